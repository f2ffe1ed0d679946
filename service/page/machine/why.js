// Why one alarm is forecast as it is: each part as a bar, to the right if it makes the alarm likelier.
import { percent, plantTime, utc } from "alarmcast-format";

export default {
  template: `
    <div v-if="reason" class="ac-why">
      <h3>{{ reason.code }} {{ reason.text }}</h3>
      <p>Usually the model says <b>{{ percent(reason.baseline_probability) }}</b> here, now it says <b>{{ percent(reason.probability) }}</b>.</p>
      <ul class="ac-parts">
        <li v-for="part in reason.contributions" :key="part.kind + part.code">
          <span class="ac-said" :title="part.last_seen ? 'last seen ' + plantTime(part.last_seen, zone) + ', ' + utc(part.last_seen) : ''">{{ part.sentence }}</span>
          <span class="ac-pull" aria-hidden="true"><i :class="part.contribution < 0 ? 'is-against' : 'is-towards'" :style="{ width: 50 * Math.abs(part.contribution) / largest + '%' }"></i></span>
          <span class="ac-share" :title="odds(part.contribution)"><span class="only-read">{{ part.contribution < 0 ? "against" : "towards" }}</span>{{ signed(part.contribution) }}</span>
        </li>
        <li class="ac-total">
          <span class="ac-said">Together: from the usual {{ signed(reason.baseline_log_odds) }} to {{ signed(reason.log_odds) }}</span>
          <span class="ac-pull quiet small"><em>◀ less likely</em><em>likelier ▶</em></span>
          <span class="ac-share" :title="odds(reason.log_odds - reason.baseline_log_odds)">{{ signed(reason.log_odds - reason.baseline_log_odds) }}</span>
        </li>
      </ul>
      <p class="quiet small">{{ reading }}</p>
      <p class="quiet small">{{ basis }}</p>
    </div>`,
  data() {
    return { reason: null, reading: "", baseline_samples: 0, model_version: "", as_of: null, zone: "UTC" };
  },
  computed: {
    largest() {
      return Math.max(0.5, ...this.reason.contributions.map((part) => Math.abs(part.contribution)));
    },
    basis() {
      const usual = this.baseline_samples ? `The usual is taken from ${this.baseline_samples} past moments of this machine.` : "This machine has no past yet; the usual is what the model says of one that was never heard.";
      return `${usual} Model ${this.model_version}, ${plantTime(this.as_of, this.zone)}.`;
    },
  },
  mounted() {
    this.$emit("ready");
  },
  methods: {
    percent, plantTime, utc,
    load(told) {
      Object.assign(this, told);
    },
    signed(value) {
      return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
    },
    odds(value) {
      const times = Math.exp(Math.abs(value)).toFixed(1);
      return value < 0 ? `the odds divided by ${times}` : `the odds times ${times}`;
    },
  },
};
