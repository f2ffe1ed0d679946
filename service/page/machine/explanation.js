// The factors of the forecast of one alarm, in percentage points; log-odds are shown on request.
import { percent, plantTime, text, utc } from "alarmcast-format";

const MIN_SCALE = 5; // percentage points; smaller factors have short bars

export default {
  template: `
    <div v-if="alarm" class="ac-explanation">
      <h3>{{ alarm.code }} {{ alarm.text }}</h3>
      <p>{{ summary }}</p>
      <ul class="ac-factors">
        <li v-for="factor in factors" :key="factor.kind + factor.code">
          <span class="ac-sentence" :title="factor.last_seen ? text('machine.factors.last_seen', { time: plantTime(factor.last_seen, zone) }) + ', ' + utc(factor.last_seen) : ''">{{ factor.sentence }}</span>
          <span class="ac-factor-bar" aria-hidden="true"><i :class="factor.points < 0 ? 'is-decrease' : 'is-increase'" :style="{ width: 50 * Math.abs(factor.points) / scale + '%' }"></i></span>
          <span class="ac-value" :title="text('machine.factors.points.help')"><span class="sr-only">{{ factor.points < 0 ? text("machine.factors.decreases") : text("machine.factors.increases") }}</span>{{ points(factor.points) }}</span>
        </li>
        <li class="ac-total">
          <span class="ac-sentence">{{ text("machine.factors.total", { baseline: percent(alarm.baseline_probability), now: percent(alarm.probability) }) }}</span>
          <span class="ac-factor-bar quiet small"><em>{{ text("machine.factors.less") }}</em><em>{{ text("machine.factors.more") }}</em></span>
          <span class="ac-value" :title="text('machine.factors.points.help')">{{ points(100 * (alarm.probability - alarm.baseline_probability)) }}</span>
        </li>
      </ul>
      <p class="quiet small">{{ basis }}</p>
      <details class="small">
        <summary>{{ text("machine.factors.how") }}</summary>
        <p>{{ reading }} {{ text("machine.factors.how.points") }}</p>
        <p>{{ text("machine.factors.how.log_odds", { baseline: signed(alarm.baseline_log_odds, 2), now: signed(alarm.log_odds, 2), difference: signed(alarm.log_odds - alarm.baseline_log_odds, 2) }) }}</p>
        <table class="ac-table">
          <thead><tr><th scope="col">{{ text("machine.factors.how.factor") }}</th><th scope="col" class="number">{{ text("machine.factors.how.column") }}</th></tr></thead>
          <tbody><tr v-for="factor in factors" :key="factor.kind + factor.code"><td>{{ factor.sentence }}</td><td class="number" :title="odds(factor.contribution)">{{ signed(factor.contribution, 2) }}</td></tr></tbody>
        </table>
      </details>
    </div>`,
  data() {
    return { alarm: null, reading: "", baseline_samples: 0, model_version: "", as_of: null, zone: "UTC" };
  },
  computed: {
    // Splits the difference in probability in proportion to the log-odds.
    factors() {
      const { probability, baseline_probability, log_odds, baseline_log_odds, contributions } = this.alarm;
      const difference = log_odds - baseline_log_odds;
      const slope = Math.abs(difference) < 1e-3 ? probability * (1 - probability) : (probability - baseline_probability) / difference;
      return contributions.map((factor) => ({ ...factor, points: 100 * slope * factor.contribution }));
    },
    scale() {
      return Math.max(MIN_SCALE, ...this.factors.map((factor) => Math.abs(factor.points)));
    },
    summary() {
      const values = { baseline: percent(this.alarm.baseline_probability), now: percent(this.alarm.probability) };
      if (values.baseline === values.now) return text("machine.factors.unchanged", values);
      return this.alarm.probability > this.alarm.baseline_probability ? text("machine.factors.raised", values) : text("machine.factors.lowered", values);
    },
    basis() {
      const baseline = this.baseline_samples ? text("machine.factors.baseline", { count: this.baseline_samples }) : text("machine.factors.baseline.none");
      return `${baseline} ${text("machine.factors.basis", { version: this.model_version, time: plantTime(this.as_of, this.zone) })}`;
    },
  },
  methods: {
    percent, plantTime, text, utc,
    load(data) {
      Object.assign(this, data);
    },
    signed(value, digits) {
      return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
    },
    points(value) {
      return text("machine.factors.points", { value: this.signed(value, 1) });
    },
    odds(value) {
      const factor = { value: Math.exp(Math.abs(value)).toFixed(1) };
      return value < 0 ? text("machine.factors.how.odds_divided", factor) : text("machine.factors.how.odds_times", factor);
    },
  },
};
