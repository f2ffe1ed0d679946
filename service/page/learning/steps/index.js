// How far a job is, as steps that light up one after the other; used wherever a job is shown.
const STEPS = ["collecting", "queued", "windows", "training", "memory", "exams", "gate", "serves"];
const PLACES = { starting: 2, dataset: 2, training: 3, memory: 4, exams: 5, gate: 6 };
const WORDS = {
  promoted: "promoted: the new version serves",
  rejected: "rejected by the gate: the version before serves on",
  failed: "failed: the version before serves on",
  cancelled: "cancelled",
};

export const SIGNS = { collecting: "◔", queued: "◑", running: "◕", promoted: "✓", rejected: "✕", failed: "✕", cancelled: "–" };
export const TONES = { promoted: "ac-good", rejected: "ac-bad-text", failed: "ac-bad-text", cancelled: "quiet" };

export function isOpen(job) {
  return ["collecting", "queued", "running"].includes(job.state);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function place(job) {
  if (job.state === "collecting") return 0;
  if (job.state === "queued") return 1;
  return job.state === "promoted" ? STEPS.length : (PLACES[job.progress.stage] ?? 2);
}

function figures(progress) {
  const parts = [];
  if (progress.total) parts.push(`${progress.stage === "training" ? "epoch" : "machine"} ${progress.done ?? 0} of ${progress.total}`);
  if (typeof progress.loss === "number") parts.push(`loss ${progress.loss.toFixed(4)}`);
  if (typeof progress.seconds_left === "number") parts.push(`about ${duration(progress.seconds_left)} left`);
  return parts.join(" · ");
}

export const JobSteps = {
  props: { job: Object },
  template: `
    <div class="ac-job-steps">
      <ol v-if="open || job.state === 'promoted'" class="ac-steps" :aria-label="'Stages of job ' + job.id">
        <li v-for="(step, at) in steps" :key="step" :class="{ 'is-done': at < here, 'is-here': at === here }" :aria-current="at === here ? 'step' : null">
          <span aria-hidden="true">{{ at < here ? "✓" : at === here ? "▸" : "·" }}</span>{{ step }}<span v-if="at < here" class="sr-only"> done</span>
        </li>
      </ol>
      <progress v-if="job.progress.total && open" :value="job.progress.done ?? 0" :max="job.progress.total" :aria-label="'Stage ' + job.progress.stage"></progress>
      <span class="small" v-if="open && figures" role="status">{{ figures }}</span>
      <span v-if="!open" :class="tone">{{ sign }} {{ word }}<template v-if="job.model_version"> ({{ job.model_version }})</template></span>
      <p class="small quiet" v-if="job.message">{{ job.message }}</p>
    </div>`,
  computed: {
    steps: () => STEPS,
    open() {
      return isOpen(this.job);
    },
    here() {
      return place(this.job);
    },
    figures() {
      return figures(this.job.progress);
    },
    word() {
      return WORDS[this.job.state];
    },
    sign() {
      return SIGNS[this.job.state];
    },
    tone() {
      return TONES[this.job.state];
    },
  },
};
