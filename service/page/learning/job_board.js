// What is being learned, live, and what has been. Details that are open stay open as jobs move on.
import { plantTime, utc } from "alarmcast-format";
import { JobSteps, SIGNS, TONES, duration, isOpen } from "alarmcast-steps";

const AT_FIRST = 10;

export default {
  components: { JobSteps },
  template: `
    <div class="ac-jobs">
      <p class="ac-empty" v-if="loaded && !open.length">Nothing is being learned right now.</p>
      <article v-for="job in open" :key="job.id" class="ac-job">
        <header>
          <strong><a :href="'/machines/' + name(job)">{{ name(job) }}</a></strong>
          <span class="quiet small">job {{ job.id }}, {{ job.kind === "enrol" ? "enrolment" : "learned again" }}<template v-if="job.attempt > 1">, taken up {{ job.attempt }} times</template></span>
        </header>
        <job-steps :job="job" />
      </article>
      <details v-if="finished.length">
        <summary>{{ finished.length }} that ended</summary>
        <div class="ac-scroll" tabindex="0" role="region" aria-label="Jobs that ended">
          <table class="ac-table">
            <thead><tr><th scope="col">Job</th><th scope="col">Machine</th><th scope="col">Outcome</th><th scope="col">Ended</th><th scope="col" class="number">Took</th></tr></thead>
            <tbody v-for="job in finished.slice(0, shown)" :key="job.id">
              <tr>
                <td>{{ job.id }}</td>
                <td class="ac-nowrap">{{ name(job) }}</td>
                <td class="ac-nowrap"><span :class="tones[job.state]">{{ signs[job.state] }} {{ job.state }}</span> {{ job.model_version }}</td>
                <td class="ac-nowrap"><time :datetime="ended(job)" :title="utc(ended(job))">{{ plantTime(ended(job), job.time_zone) }}</time></td>
                <td class="number ac-nowrap">{{ took(job) }}</td>
              </tr>
              <tr v-if="job.message"><td></td><td class="ac-said" colspan="4">{{ job.message }}</td></tr>
            </tbody>
          </table>
        </div>
        <button type="button" class="ac-button" v-if="finished.length > shown" @click="shown += 40">Show more</button>
      </details>
    </div>`,
  data() {
    return { jobs: [], loaded: false, shown: AT_FIRST, signs: SIGNS, tones: TONES };
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
    plantTime, utc,
    load(jobs) {
      this.jobs = jobs;
      this.loaded = true;
    },
    name(job) {
      return `${job.site}/${job.machine}`;
    },
    // In plant time, like the version that it made; the wall's is only for how long it took.
    ended(job) {
      return job.finished_plant_at ?? job.finished_at;
    },
    took(job) {
      return job.started_at ? duration((new Date(job.finished_at) - new Date(job.started_at)) / 1000) : "";
    },
  },
};
