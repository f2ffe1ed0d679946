// The plant's time, the model that serves, and a word when the service no longer tells anything.
import { plantDate, utc } from "alarmcast-format";

const PATIENCE = 10000; // milliseconds without a word

export default {
  template: `
    <span v-if="told" class="ac-model">model {{ told.model_version ?? "none yet" }}</span>
    <span v-if="told" :title="'plant time, ' + utc(told.plant_time)">{{ plantDate(told.plant_time, told.zone) }}</span>
    <span v-if="lost" class="ac-bad-word" role="alert">✕ not up to date</span>`,
  data() {
    return { told: null, lost: false, heard: Date.now() };
  },
  mounted() {
    this.watch = setInterval(() => (this.lost = Date.now() - this.heard > PATIENCE), 1000);
    this.$emit("ready");
  },
  unmounted() {
    clearInterval(this.watch);
  },
  methods: {
    plantDate, utc,
    tell(told) {
      this.told = told;
      this.heard = Date.now();
      this.lost = false;
    },
  },
};
