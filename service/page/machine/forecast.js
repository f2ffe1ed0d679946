// Every alarm that is forecast, most likely first, beside how likely it usually is. Choosing one asks why.
import { percent, plantTime, severitySigns, times, utc } from "alarmcast-format";

export default {
  template: `
    <div v-if="forecast">
      <p class="ac-key quiet small" aria-hidden="true">
        <span><i class="ac-key-bar"></i> likely</span>
        <span><i class="ac-key-usual"></i> usual here</span>
        <span><i class="ac-key-from"></i> expected from here on</span>
        <span>×2 twice as likely as usual</span>
      </p>
      <ul class="ac-bars" @keydown.down.prevent="step(1)" @keydown.up.prevent="step(-1)">
        <li v-for="one in forecast.alarms" :key="one.code">
          <button type="button" :class="['ac-line', one.expected ? 'is-expected' : '']" :aria-pressed="one.code === chosen" :aria-label="spoken(one)" @click="choose(one.code)">
            <span class="ac-what"><span :class="'ac-sev-' + one.severity" :title="one.severity + ' severity'">{{ signs[one.severity] ?? "◆" }}</span> {{ one.text }} <span class="quiet small">{{ one.code }}</span></span>
            <span class="ac-words">
              <span v-if="one.expected" class="ac-tag ac-expected">▶ expected</span>
              <span v-if="shelf(one)" class="ac-tag quiet" :title="'until ' + plantTime(shelf(one).until, zone) + ': ' + shelf(one).reason">‖ shelved</span>
              <span v-else-if="known(one)" class="ac-tag quiet" :title="known(one).note ?? ''">✓ known</span>
            </span>
            <span class="ac-gauge" :title="spoken(one)">
              <i :style="{ width: 100 * one.probability + '%' }"></i>
              <b v-if="one.base_rate !== null" :style="{ left: 100 * one.base_rate + '%' }"></b>
              <u :style="{ left: 100 * one.threshold + '%' }"></u>
            </span>
            <span class="ac-share">{{ percent(one.probability) }}</span>
            <span class="ac-lift" :title="usual(one)">{{ lift(one) }}</span>
          </button>
        </li>
      </ul>
    </div>`,
  data() {
    return { forecast: null, chosen: null, shelves: [], known_of: [], zone: "UTC", signs: severitySigns };
  },
  mounted() {
    this.$emit("ready");
  },
  methods: {
    percent, plantTime, utc,
    load(told) {
      Object.assign(this, told);
    },
    choose(code) {
      this.chosen = code;
      this.$emit("chosen", code);
      // Where the reasons stand below and not beside, go there.
      if (matchMedia("(max-width: 1000px)").matches) document.querySelector(".ac-why")?.closest(".ac-panel").scrollIntoView();
    },
    step(by) {
      const lines = [...this.$el.querySelectorAll(".ac-line")];
      lines[lines.indexOf(document.activeElement) + by]?.focus();
    },
    shelf(one) {
      return this.shelves.find((shelf) => shelf.code === one.code);
    },
    known(one) {
      return this.known_of.find((known) => known.code === one.code);
    },
    lift(one) {
      return one.base_rate ? times(one.probability / one.base_rate) : "new";
    },
    usual(one) {
      if (one.base_rate === null) return "there is no past yet to compare with";
      return one.base_rate ? `usually ${percent(one.base_rate)}` : "it has not come in this machine's past horizons";
    },
    spoken(one) {
      const words = `${one.text}: ${percent(one.probability)}, ${this.usual(one)}, expected from ${percent(one.threshold)} on`;
      return one.expected ? `${words}, so it is expected` : words;
    },
  },
};
