// Past forecasts and what occurred: one row per alarm, one column per forecast, newest first.
import { percent, plantClock, plantDay, plantTime, severitySign, text, utc, zoneName } from "alarmcast-format";

const SIGNS = { hit: "✓", miss: "!", false_alarm: "✕" };

export default {
  template: `
    <div v-if="forecasts.length">
      <div class="ac-tools">
        <label>{{ text("machine.history.show") }} <select v-model="verdict"><option value="">{{ text("machine.history.show.all") }}</option><option v-for="name in verdicts" :key="name" :value="name">{{ text("machine.history.show." + name) }}</option></select></label>
        <label>{{ text("machine.history.alarm") }} <select v-model="code"><option value="">{{ text("machine.history.alarm.all") }}</option><option v-for="alarm in alarms" :key="alarm.code" :value="alarm.code">{{ alarm.code }} {{ alarm.text }}</option></select></label>
        <label>{{ text("machine.history.interval") }} <select v-model="hourly"><option :value="true">{{ text("machine.history.interval.hourly") }}</option><option :value="false">{{ text("machine.history.interval.all") }}</option></select></label>
        <span class="quiet small" role="status">{{ summary }}</span>
      </div>
      <p class="ac-legend quiet small">
        <span v-for="name in verdicts" :key="name"><span :class="'ac-cell is-' + name" aria-hidden="true">{{ signs[name] }}</span> {{ text("machine.history." + name) }}: {{ text("machine.history." + name + ".help") }}</span>
        <span><span class="ac-cell" aria-hidden="true">·</span> {{ text("machine.history.neither") }}</span>
        <span><span class="ac-cell is-gap" aria-hidden="true">?</span> {{ text("machine.history.gap") }}</span>
      </p>
      <div class="ac-scroll ac-history" tabindex="0" role="region" :aria-label="text('machine.history.region')">
        <table>
          <thead>
            <tr><th rowspan="2" scope="col" class="ac-sticky">{{ text("machine.history.alarm") }} <span class="quiet small" v-if="columns.length">{{ text("machine.history.times", { zone: zoneName(columns[0].as_of, zone) }) }}</span></th><th v-for="day in days" :key="day.name" :colspan="day.count" scope="colgroup" class="ac-day"><span>{{ day.name }}</span></th></tr>
            <tr><th v-for="forecast in columns" :key="forecast.as_of" scope="col" :title="heading(forecast)">{{ plantClock(forecast.as_of, zone).slice(0, hourly ? 2 : 5) }}</th></tr>
          </thead>
          <tbody>
            <tr v-for="row in rows" :key="row.code">
              <th scope="row" class="ac-sticky"><span :class="'ac-sev-' + row.severity" aria-hidden="true">{{ severitySign(row.severity) }}</span> {{ row.text }} <span class="quiet small">{{ row.code }}</span></th>
              <td v-for="cell in row.cells" :key="cell.key"><span :class="cell.style" :title="cell.title"><span aria-hidden="true">{{ cell.sign }}</span><span class="sr-only">{{ cell.label }}</span></span></td>
            </tr>
          </tbody>
        </table>
      </div>
      <p v-if="!rows.length" class="ac-empty">{{ text("machine.history.no_match") }}</p>
      <button v-if="next" type="button" class="ac-button ac-older" @click="$emit('older', next)">{{ text("machine.history.older") }}</button>
    </div>`,
  data() {
    return { forecasts: [], next: null, zone: "UTC", verdict: "", code: "", hourly: true, signs: SIGNS, verdicts: Object.keys(SIGNS) };
  },
  computed: {
    columns() {
      if (!this.hourly) return this.forecasts;
      const hours = new Map();
      for (const forecast of this.forecasts) hours.set(forecast.as_of.slice(0, 13), forecast); // the first of each hour
      return [...hours.values()];
    },
    days() {
      const days = [];
      for (const forecast of this.columns) {
        const name = plantDay(forecast.as_of, this.zone);
        if (days.at(-1)?.name === name) days.at(-1).count += 1;
        else days.push({ name, count: 1 });
      }
      return days;
    },
    alarms() {
      const byCode = new Map();
      for (const forecast of this.forecasts) for (const alarm of forecast.alarms) if (!byCode.has(alarm.code)) byCode.set(alarm.code, alarm);
      return [...byCode.values()].sort((a, b) => a.code - b.code);
    },
    rows() {
      const counts = new Map();
      for (const forecast of this.columns) for (const alarm of forecast.alarms) if (this.matches(alarm)) counts.set(alarm.code, (counts.get(alarm.code) ?? 0) + 1);
      const found = this.alarms.filter((alarm) => counts.has(alarm.code)).sort((a, b) => counts.get(b.code) - counts.get(a.code) || a.code - b.code);
      return found.map((alarm) => ({ ...alarm, cells: this.columns.map((forecast) => ({ key: forecast.as_of, ...this.cell(forecast, alarm.code) })) }));
    },
    summary() {
      const counts = { hit: 0, miss: 0, false_alarm: 0 };
      for (const forecast of this.columns) for (const alarm of forecast.alarms) if (alarm.verdict in counts && this.matches(alarm)) counts[alarm.verdict] += 1;
      const names = this.verdicts.filter((name) => !this.verdict || this.verdict === name);
      const results = names.map((name) => text(`machine.history.count.${name}`, { count: counts[name] })).join(", ");
      return text("machine.history.summary", { count: this.columns.length, results });
    },
  },
  methods: {
    plantClock, severitySign, text, zoneName,
    // Older forecasts that were loaded stay when newer ones arrive.
    load({ forecasts, zone, next, older }) {
      const isFirst = !this.forecasts.length;
      const byTime = new Map(this.forecasts.map((forecast) => [forecast.as_of, forecast]));
      for (const forecast of forecasts) byTime.set(forecast.as_of, Object.freeze(forecast));
      this.forecasts = [...byTime.values()].sort((a, b) => b.as_of.localeCompare(a.as_of));
      this.zone = zone;
      if (isFirst || older) this.next = next;
    },
    matches(alarm) {
      return (!this.verdict || alarm.verdict === this.verdict) && (this.code === "" || alarm.code === this.code);
    },
    heading(forecast) {
      return text("machine.history.forecast", { time: plantTime(forecast.as_of, this.zone), utc: utc(forecast.as_of), version: forecast.model_version, status: text(`machine.history.status.${forecast.status}`) });
    },
    cell(forecast, code) {
      const alarm = forecast.alarms.find((alarm) => alarm.code === code);
      const heading = this.heading(forecast);
      if (forecast.unobserved) return { sign: "?", label: text("machine.history.gap"), style: "ac-cell is-gap", title: text("machine.history.cell.gap", { forecast: heading }) };
      if (!alarm || !this.matches(alarm)) return { sign: "·", label: alarm ? "" : text("machine.history.neither"), style: "ac-cell", title: "" };
      const verdict = text(`machine.history.${alarm.verdict}`);
      const title = text("machine.history.cell", {
        alarm: alarm.text, verdict, help: text(`machine.history.${alarm.verdict}.help`), end: plantTime(forecast.horizon_end, this.zone),
        probability: percent(alarm.probability), forecast: heading,
      });
      return { sign: SIGNS[alarm.verdict], label: verdict, style: `ac-cell is-${alarm.verdict}`, title };
    },
  },
};
