// Running and finished training jobs; open details stay open while jobs change.
import { plantTime, text, utc } from "alarmcast-format";
import { JobSteps, SIGNS, TONES, duration, isOpen } from "alarmcast-steps";

const FIRST = 10;

export default {
  components: { JobSteps },
  template: `
    <div class="ac-jobs">
      <p class="ac-empty" v-if="loaded && !open.length">{{ text("learning.jobs.none") }}</p>
      <article v-for="job in open" :key="job.id" class="ac-job">
        <header>
          <strong><a :href="'/machines/' + name(job)">{{ name(job) }}</a></strong>
          <span class="quiet small">{{ kind(job) }}<template v-if="job.attempt > 1">{{ text("learning.jobs.attempt", { count: job.attempt }) }}</template></span>
        </header>
        <job-steps :job="job" />
      </article>
      <details v-if="finished.length">
        <summary>{{ text("learning.jobs.finished", { count: finished.length }) }}</summary>
        <div class="ac-scroll" tabindex="0" role="region" :aria-label="text('learning.jobs.finished_label')">
          <table class="ac-table">
            <thead><tr><th scope="col">{{ text("learning.jobs.job") }}</th><th scope="col">{{ text("learning.jobs.machine") }}</th><th scope="col">{{ text("learning.jobs.result") }}</th><th scope="col">{{ text("learning.jobs.ended") }}</th><th scope="col" class="number">{{ text("learning.jobs.took") }}</th></tr></thead>
            <tbody v-for="job in finished.slice(0, shown)" :key="job.id">
              <tr>
                <td>{{ job.id }}</td>
                <td class="ac-nowrap">{{ name(job) }}</td>
                <td class="ac-nowrap"><span :class="tones[job.state]">{{ signs[job.state] }} {{ result(job) }}</span> {{ job.model_version }}</td>
                <td class="ac-nowrap"><time :datetime="ended(job)" :title="utc(ended(job))">{{ plantTime(ended(job), job.time_zone) }}</time></td>
                <td class="number ac-nowrap">{{ took(job) }}</td>
              </tr>
              <tr v-if="job.message"><td></td><td class="ac-job-message" colspan="4">{{ job.message }}</td></tr>
            </tbody>
          </table>
        </div>
        <button type="button" class="ac-button" v-if="finished.length > shown" @click="shown += 40">{{ text("learning.jobs.more") }}</button>
      </details>
    </div>`,
  data() {
    return { jobs: [], loaded: false, shown: FIRST, signs: SIGNS, tones: TONES };
  },
  computed: {
    open() {
      return this.jobs.filter(isOpen).sort((a, b) => (b.state === "running") - (a.state === "running") || a.id - b.id);
    },
    finished() {
      return this.jobs.filter((job) => !isOpen(job) && job.finished_at);
    },
  },
  mounted() {
    this.$emit("ready");
  },
  methods: {
    plantTime, text, utc,
    kind(job) {
      return job.kind === "enrol" ? text("learning.jobs.enrolment", { job: job.id }) : text("learning.jobs.retraining", { job: job.id });
    },
    result(job) {
      return {
        promoted: () => text("learning.result.promoted"), rejected: () => text("learning.result.rejected"),
        failed: () => text("learning.result.failed"), cancelled: () => text("learning.result.cancelled"),
      }[job.state]?.();
    },
    load(jobs) {
      this.jobs = jobs;
      this.loaded = true;
    },
    name(job) {
      return `${job.site}/${job.machine}`;
    },
    // Plant time, like the version; wall time is used for the duration only.
    ended(job) {
      return job.finished_plant_at ?? job.finished_at;
    },
    took(job) {
      return job.started_at ? duration((new Date(job.finished_at) - new Date(job.started_at)) / 1000) : "";
    },
  },
};
