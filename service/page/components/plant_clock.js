// The plant time with its zone, and a warning when updates no longer arrive.
import { plantTime, text, utc } from "alarmcast-format";

const TIMEOUT = 15000; // milliseconds without an update

export default {
  template: `
    <span v-if="now" :title="text('common.clock', { utc: utc(now) })">{{ plantTime(now, zone) }}</span>
    <span v-if="lost" class="ac-bad-text" role="alert">✕ {{ text("common.disconnected") }}</span>`,
  data() {
    return { now: null, zone: "UTC", lost: false, updated: Date.now() };
  },
  mounted() {
    this.timer = setInterval(() => (this.lost = Date.now() - this.updated > TIMEOUT), 1000);
  },
  unmounted() {
    clearInterval(this.timer);
  },
  methods: {
    plantTime, text, utc,
    show(now, zone) {
      Object.assign(this, { now, zone, updated: Date.now(), lost: false });
    },
  },
};
