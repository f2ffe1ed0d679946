// Every forecast alarm, highest probability first, with its usual rate and level.
import { formatLift, percent, plantTime, severitySign, severityText, text } from "alarmcast-format";

export default {
  template: `
    <div v-if="forecast">
      <p class="ac-legend quiet small" aria-hidden="true">
        <span><i class="ac-legend-bar"></i> {{ text("machine.forecast.legend.bar") }}</span>
        <span><i class="ac-legend-usual"></i> {{ text("machine.forecast.legend.usual") }}</span>
        <span><i class="ac-legend-threshold"></i> {{ text("machine.forecast.legend.threshold") }}</span>
        <span>{{ text("machine.forecast.legend.lift") }}</span>
      </p>
      <ul class="ac-bars" @keydown.down.prevent="moveFocus(1)" @keydown.up.prevent="moveFocus(-1)">
        <li v-for="alarm in forecast.alarms" :key="alarm.code">
          <button type="button" :class="['ac-forecast-row', alarm.expected ? 'is-expected' : '']" :aria-pressed="alarm.code === selected" :aria-label="label(alarm)" @click="select(alarm.code)">
            <span class="ac-name"><span :class="'ac-sev-' + alarm.severity" :title="severityText(alarm.severity)">{{ severitySign(alarm.severity) }}</span> {{ alarm.text }} <span class="ac-code quiet small">{{ alarm.code }}</span><span v-if="alarm.within" class="ac-within quiet small" :title="text('machine.forecast.within.help')"> {{ within(alarm) }}</span></span>
            <span class="ac-tags">
              <span v-if="alarm.level !== 'usual'" :class="['ac-tag', 'ac-' + alarm.level]" :title="text('machine.forecast.level.' + alarm.level + '.help')">{{ alarm.expected ? "▶" : "▲" }} {{ text("machine.forecast.level." + alarm.level) }}</span>
              <span v-if="alarm.base_rate === 0" class="ac-tag quiet" :title="text('machine.forecast.never_seen.help')">{{ text("machine.forecast.never_seen") }}</span>
              <span v-if="shelf(alarm)" class="ac-tag quiet" :title="text('machine.forecast.shelved.help', { time: plantTime(shelf(alarm).until, zone), reason: shelf(alarm).reason })">‖ {{ text("machine.forecast.shelved") }}</span>
              <span v-else-if="acknowledgement(alarm)" class="ac-tag quiet" :title="acknowledgement(alarm).note ?? ''">✓ {{ text("machine.forecast.acknowledged") }}</span>
            </span>
            <span class="ac-gauge" :title="label(alarm)">
              <i :style="{ width: 100 * alarm.probability + '%' }"></i>
              <b v-if="alarm.base_rate !== null" :style="{ left: 100 * alarm.base_rate + '%' }"></b>
              <u :style="{ left: 100 * alarm.threshold + '%' }"></u>
            </span>
            <span class="ac-value">{{ percent(alarm.probability) }}</span>
            <span class="ac-lift" :title="usual(alarm)">{{ alarm.base_rate ? formatLift(alarm.probability / alarm.base_rate) : "–" }}</span>
          </button>
        </li>
      </ul>
    </div>`,
  mounted() {
    // A notification links to its alarm: ?code=139.
    const code = new URLSearchParams(location.search).get("code");
    if (/^\d+$/.test(code ?? "")) this.$emit("selected", Number(code));
  },
  data() {
    return { forecast: null, selected: null, shelves: [], acknowledgements: [], zone: "UTC" };
  },
  methods: {
    formatLift, percent, plantTime, severitySign, severityText, text,
    load(data) {
      Object.assign(this, data);
    },
    select(code) {
      this.selected = code;
      this.$emit("selected", code);
      // On a narrow screen the factors are below the list.
      if (matchMedia("(max-width: 1000px)").matches) document.querySelector(".ac-explanation")?.closest(".ac-panel").scrollIntoView();
    },
    moveFocus(step) {
      const rows = [...this.$el.querySelectorAll(".ac-forecast-row")];
      rows[rows.indexOf(document.activeElement) + step]?.focus();
    },
    shelf(alarm) {
      return this.shelves.find((shelf) => shelf.code === alarm.code);
    },
    acknowledgement(alarm) {
      return this.acknowledgements.find((acknowledgement) => acknowledgement.code === alarm.code);
    },
    usual(alarm) {
      if (alarm.base_rate === null) return text("machine.forecast.no_usual");
      return alarm.base_rate ? text("machine.forecast.usual", { rate: percent(alarm.base_rate) }) : text("machine.forecast.never_seen.help");
    },
    within(alarm) {
      const each = Object.entries(alarm.within).map(([horizon, share]) => text("machine.forecast.within.each", { horizon: horizon.replace(/(\d)([a-z])/, "$1 $2"), probability: percent(share) }));
      return text("machine.forecast.within", { horizons: each.join(", ") });
    },
    label(alarm) {
      const values = { alarm: alarm.text, probability: percent(alarm.probability), usual: this.usual(alarm), level: text("machine.forecast.level." + alarm.level) };
      return text("machine.forecast.label", values);
    },
  },
};
