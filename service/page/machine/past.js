// Were the forecasts right? One line an alarm, one column a forecast, newest first.
import { percent, plantClock, plantDay, plantTime, severitySigns, utc, zoneName } from "alarmcast-format";

const VERDICTS = {
  hit: { sign: "✓", word: "hit", says: "expected, and it came" },
  miss: { sign: "!", word: "miss", says: "not expected, but it came" },
  false_alarm: { sign: "✕", word: "false alarm", says: "expected, but it did not come" },
};

export default {
  template: `
    <div v-if="moments.length">
      <div class="ac-tools">
        <label>Show <select v-model="only"><option value="">everything</option><option value="hit">hits</option><option value="miss">misses</option><option value="false_alarm">false alarms</option></select></label>
        <label>Alarm <select v-model="code"><option value="">all</option><option v-for="one in codes" :key="one.code" :value="one.code">{{ one.code }} {{ one.text }}</option></select></label>
        <label>A forecast <select v-model="every"><option :value="60">every hour</option><option :value="0">each that was stored</option></select></label>
        <span class="quiet small" role="status">{{ summary }}</span>
      </div>
      <p class="ac-key quiet small" style="margin-top: .5rem">
        <span v-for="(one, name) in verdicts" :key="name"><span :class="'ac-cell is-' + name" aria-hidden="true">{{ one.sign }}</span> {{ one.word }}: {{ one.says }}</span>
        <span><span class="ac-cell" aria-hidden="true">·</span> neither expected nor came</span>
        <span><span class="ac-cell is-unheard" aria-hidden="true">?</span> alarms were lost, so it cannot be told</span>
      </p>
      <div class="ac-scroll ac-past" tabindex="0" role="region" aria-label="Past forecasts against what happened, newest first">
        <table>
          <thead>
            <tr><th rowspan="2" scope="col" class="ac-stays">Alarm <span class="quiet small" v-if="columns.length">(times in {{ zoneName(columns[0].as_of, zone) }})</span></th><th v-for="day in days" :key="day.name" :colspan="day.count" scope="colgroup" class="ac-day"><span>{{ day.name }}</span></th></tr>
            <tr><th v-for="one in columns" :key="one.as_of" scope="col" :title="heading(one)">{{ plantClock(one.as_of, zone).slice(0, every ? 2 : 5) }}</th></tr>
          </thead>
          <tbody>
            <tr v-for="row in rows" :key="row.code">
              <th scope="row" class="ac-stays" :title="row.code + ' ' + row.text"><span :class="'ac-sev-' + row.severity" aria-hidden="true">{{ signs[row.severity] ?? "◆" }}</span> {{ row.text }} <span class="quiet small">{{ row.code }}</span></th>
              <td v-for="one in columns" :key="one.as_of"><span :class="cell(one, row).style" :title="cell(one, row).title"><span aria-hidden="true">{{ cell(one, row).sign }}</span><span class="only-read">{{ cell(one, row).word }}</span></span></td>
            </tr>
          </tbody>
        </table>
      </div>
      <p v-if="!rows.length" class="ac-calm">Nothing of the kind among the forecasts shown; change the filter, or look further back.</p>
      <button v-if="next" type="button" class="ac-button" style="margin-top: .6rem" @click="$emit('older', next)">Look further back</button>
    </div>`,
  data() {
    return { moments: [], next: null, zone: "UTC", only: "", code: "", every: 60, signs: severitySigns, verdicts: VERDICTS };
  },
  computed: {
    columns() {
      if (!this.every) return this.moments;
      const hours = new Map();
      for (const one of this.moments) hours.set(one.as_of.slice(0, 13), one); // the earliest of each hour stays
      return [...hours.values()];
    },
    days() {
      const days = [];
      for (const one of this.columns) {
        const name = plantDay(one.as_of, this.zone);
        if (days.at(-1)?.name === name) days.at(-1).count += 1;
        else days.push({ name, count: 1 });
      }
      return days;
    },
    codes() {
      const found = new Map();
      for (const one of this.moments) for (const alarm of one.alarms) if (!found.has(alarm.code)) found.set(alarm.code, alarm);
      return [...found.values()].sort((a, b) => a.code - b.code);
    },
    rows() {
      const counts = new Map();
      for (const one of this.columns) for (const alarm of one.alarms) if (this.fits(alarm)) counts.set(alarm.code, (counts.get(alarm.code) ?? 0) + 1);
      return this.codes.filter((row) => counts.has(row.code)).sort((a, b) => counts.get(b.code) - counts.get(a.code) || a.code - b.code);
    },
    summary() {
      const counts = { hit: 0, miss: 0, false_alarm: 0 };
      for (const one of this.columns) for (const alarm of one.alarms) if (alarm.verdict in counts && this.fits(alarm)) counts[alarm.verdict] += 1;
      const words = Object.entries(counts).filter(([name]) => !this.only || this.only === name);
      return `${this.columns.length} forecasts: ` + words.map(([name, count]) => `${count} ${this.plural(name, count)}`).join(", ");
    },
  },
  mounted() {
    this.$emit("ready");
  },
  methods: {
    plantClock, zoneName,
    // What was looked at further back stays when something new is told.
    load(told) {
      const all = new Map(this.moments.map((one) => [one.as_of, one]));
      const reached = this.moments.length;
      for (const one of told.moments) all.set(one.as_of, Object.freeze(one));
      this.moments = [...all.values()].sort((a, b) => b.as_of.localeCompare(a.as_of));
      this.zone = told.zone;
      if (!reached || told.older) this.next = told.next;
    },
    fits(alarm) {
      return (!this.only || alarm.verdict === this.only) && (this.code === "" || alarm.code === this.code);
    },
    plural(name, count) {
      const word = VERDICTS[name].word;
      if (count === 1) return word;
      return word === "miss" ? "misses" : `${word}s`;
    },
    heading(one) {
      return `forecast of ${plantTime(one.as_of, this.zone)} (${utc(one.as_of)}), model ${one.model_version}, ${one.status.replace("_", " ")}`;
    },
    cell(one, row) {
      const alarm = one.alarms.find((alarm) => alarm.code === row.code);
      if (one.unobserved) return { sign: "?", word: "unknown", style: "ac-cell is-unheard", title: `${this.heading(one)}: alarms of its horizon were lost` };
      if (!alarm || !this.fits(alarm)) return { sign: "·", word: alarm ? "" : "neither", style: "ac-cell", title: "" };
      const verdict = VERDICTS[alarm.verdict];
      const said = `${alarm.text}: ${verdict.word}, ${verdict.says} by ${plantTime(one.horizon_end, this.zone)}; said ${percent(alarm.probability)}, expected from ${percent(alarm.threshold)} on; ${this.heading(one)}`;
      return { sign: verdict.sign, word: verdict.word, style: `ac-cell is-${alarm.verdict}`, title: said };
    },
  },
};
