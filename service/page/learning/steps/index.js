// The stages of a training job; used wherever a job is shown.
import { text } from "alarmcast-format";

const STAGES = { starting: 2, dataset: 2, training: 3, memory: 4, exams: 5, gate: 6 }; // index of the step

export const SIGNS = { collecting: "◔", queued: "◑", running: "◕", promoted: "✓", rejected: "✕", failed: "✕", cancelled: "–" };
export const TONES = { promoted: "ac-good", rejected: "ac-bad-word", failed: "ac-bad-word", cancelled: "quiet" };

function steps() {
  return [
    text("learning.step.collecting"), text("learning.step.queued"), text("learning.step.windows"), text("learning.step.training"),
    text("learning.step.memory"), text("learning.step.exams"), text("learning.step.gate"), text("learning.step.active"),
  ];
}

function outcome(state) {
  return {
    promoted: () => text("learning.outcome.promoted"), rejected: () => text("learning.outcome.rejected"),
    failed: () => text("learning.outcome.failed"), cancelled: () => text("learning.outcome.cancelled"),
  }[state]?.();
}

export function isOpen(job) {
  return ["collecting", "queued", "running"].includes(job.state);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function currentStep(job) {
  if (job.state === "collecting") return 0;
  if (job.state === "queued") return 1;
  return job.state === "promoted" ? steps().length : (STAGES[job.progress.stage] ?? 2);
}

function progressText({ stage, total, done, loss, seconds_left: left }) {
  const parts = [];
  const count = { done: done ?? 0, total };
  if (total) parts.push(stage === "training" ? text("learning.steps.epoch", count) : text("learning.steps.machine", count));
  if (typeof loss === "number") parts.push(text("learning.steps.loss", { loss: loss.toFixed(4) }));
  if (typeof left === "number") parts.push(text("learning.steps.left", { duration: duration(left) }));
  return parts.join(" · ");
}

export const JobSteps = {
  props: { job: Object },
  template: `
    <div class="ac-job-steps">
      <ol v-if="open || job.state === 'promoted'" class="ac-steps" :aria-label="text('learning.steps.label', { job: job.id })">
        <li v-for="(step, index) in steps" :key="step" :class="{ 'is-done': index < current, 'is-current': index === current }" :aria-current="index === current ? 'step' : null">
          <span aria-hidden="true">{{ index < current ? "✓" : index === current ? "▸" : "·" }}</span>{{ step }}<span v-if="index < current" class="only-read">{{ text("learning.step.done") }}</span>
        </li>
      </ol>
      <progress v-if="job.progress.total && open" :value="job.progress.done ?? 0" :max="job.progress.total" :aria-label="text('learning.steps.progress')"></progress>
      <span class="small" v-if="open && progress" role="status">{{ progress }}</span>
      <span v-if="!open" :class="tone">{{ sign }} {{ outcome }}<template v-if="job.model_version"> ({{ job.model_version }})</template></span>
      <p class="small quiet" v-if="job.message">{{ job.message }}</p>
    </div>`,
  computed: {
    steps,
    open() {
      return isOpen(this.job);
    },
    current() {
      return currentStep(this.job);
    },
    progress() {
      return progressText(this.job.progress);
    },
    outcome() {
      return outcome(this.job.state);
    },
    sign() {
      return SIGNS[this.job.state];
    },
    tone() {
      return TONES[this.job.state];
    },
  },
  methods: { text },
};
