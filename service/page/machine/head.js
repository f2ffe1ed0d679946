// The machine, its status, and notes on anything that limits its forecast.
import { ago, machineTitle, percent, plantClock, plantDay, plantTime, presenceTag, text, utc, zoneName } from "alarmcast-format";

const DAY = 86400000; // milliseconds

export default {
  template: `
    <section v-if="machine" class="ac-machine-head" :aria-label="text('machine.region')">
      <div class="ac-head">
        <h1>{{ machineTitle(machine) }}</h1>
        <span class="quiet">{{ machine.site }}/{{ machine.machine }}</span>
        <span v-if="presence" :class="['ac-tag', presence.tone]" :title="presence.help"><span aria-hidden="true">{{ presence.sign }}</span>{{ presence.label }}</span>
        <span class="ac-tag quiet">{{ erased ? text("machine.erased") : text("machine.state." + machine.state) }}</span>
        <a class="ac-button ac-end" :href="'/v1/alarms.csv?site=' + machine.site + '&machine=' + machine.machine" download>{{ text("machine.csv") }}</a>
      </div>
      <div v-for="note in notes" :key="note.text" class="ac-warn">
        <p>{{ note.text }}</p>
        <details v-if="note.details" class="small"><summary>{{ text("machine.details") }}</summary>{{ note.details }}</details>
      </div>
      <dl class="ac-stats ac-facts">
        <div><dt>{{ text("machine.last_message") }}</dt><dd :title="lastSeen ? utc(lastSeen) : ''">{{ lastSeen ? ago(lastSeen, now) : text("machine.last_message.never") }} <small v-if="lastSeen">{{ plantTime(lastSeen, zone) }}</small></dd></div>
        <div><dt>{{ text("machine.last_alarm") }}</dt><dd :title="lastAlarm ? utc(lastAlarm.at) : ''">{{ lastAlarm ? ago(lastAlarm.at, now) : text("machine.last_alarm.none") }} <small v-if="lastAlarm">{{ lastAlarm.code }} {{ lastAlarm.text }}</small></dd></div>
        <div><dt>{{ text("machine.buffered") }}</dt><dd :title="stateAt ? utc(stateAt) : ''">{{ buffered ?? "–" }} <small v-if="stateAt">{{ text("machine.buffered.at", { count: buffered, time: clock(stateAt) }) }}</small></dd></div>
        <div v-if="forecast"><dt>{{ text("machine.coverage") }}</dt><dd>{{ percent(forecast.coverage) }} <small>{{ text("machine.coverage.window", { count: forecast.events_seen, hours: inputHours }) }}</small></dd></div>
        <div v-if="forecast"><dt>{{ text("machine.window") }}</dt><dd :title="text('machine.window.span', { start: utc(forecast.as_of), end: utc(forecast.horizon_end) })">{{ text("machine.window.span", { start: plantClock(forecast.as_of, zone), end: clock(forecast.horizon_end) }) }} <small>{{ plantDay(forecast.as_of, zone) }}</small></dd></div>
        <div><dt>{{ text("machine.model") }}</dt><dd>{{ forecast ? forecast.model_version : text("machine.model.none") }} <small v-if="forecast" :title="machine.learned_at ? utc(machine.learned_at) : ''">{{ trained }}</small></dd></div>
      </dl>
    </section>`,
  data() {
    return { machine: null, card: null, forecast: null, now: new Date().toISOString() };
  },
  computed: {
    zone() {
      return this.machine.time_zone;
    },
    retired() {
      return this.machine.state === "retired";
    },
    erased() {
      return this.retired && (this.machine.reason ?? "").startsWith("Erased");
    },
    presence() {
      return this.retired ? null : presenceTag(this.card?.presence ?? "never");
    },
    agent() {
      return this.retired ? null : this.machine.agent;
    },
    lastSeen() {
      return this.card?.last_seen_at ?? this.machine.agent?.last_seen_at ?? null;
    },
    lastAlarm() {
      return this.card?.last_alarm ?? null;
    },
    buffered() {
      return this.machine.agent?.spooled ?? null;
    },
    stateAt() {
      return this.buffered === null ? null : (this.machine.agent.state_at ?? null);
    },
    inputHours() {
      const minutes = Math.round((new Date(this.forecast.window_end) - new Date(this.forecast.window_start)) / 60000);
      const parts = { hours: Math.floor(minutes / 60), minutes: minutes % 60 };
      return parts.minutes ? text("machine.hours_minutes", parts) : text("machine.hours", parts);
    },
    trained() {
      if (!this.forecast.learned) return text("machine.model.fleet");
      return this.machine.learned_at ? text("machine.model.trained_at", { time: plantTime(this.machine.learned_at, this.zone) }) : text("machine.model.trained");
    },
    stateNote() {
      const { state, reason } = this.machine;
      if (this.erased) return { text: text("machine.note.erased"), details: reason };
      if (state === "live") return reason && { text: text("machine.note.rejected"), details: reason };
      return { text: text(`machine.note.${state}`), details: reason };
    },
    forecastNote() {
      if (!this.forecast) return null;
      if (!this.lastSeen && !this.retired) return text("machine.note.never_connected");
      if (this.forecast.status === "warming_up") return text("machine.note.warming_up", { coverage: percent(this.forecast.coverage), hours: this.inputHours });
      if (this.forecast.status === "stale") return this.lastSeen ? text("machine.note.stale", { time: plantTime(this.lastSeen, this.zone) }) : text("machine.note.stale.never");
      return null;
    },
    agentNotes() {
      const { skipped = 0, last_skipped = null, warning = null, duplicate = null } = this.agent ?? {};
      const withTime = (key, note) => text(key, { note: note.text, time: plantTime(note.at, this.zone) });
      return [
        skipped && this.isRecent(last_skipped) && { text: text("machine.note.skipped", { count: skipped, rows: skipped.toLocaleString("en") }), details: withTime("machine.note.skipped.last", last_skipped) },
        this.isRecent(warning) && { text: withTime("machine.note.agent", warning) },
        this.isRecent(duplicate) && { text: withTime("machine.note.duplicate", duplicate) },
      ];
    },
    notes() {
      const silent = this.card?.presence === "silent" && { text: text("machine.note.silent") };
      return [this.stateNote, this.forecastNote && { text: this.forecastNote }, silent, ...this.agentNotes].filter(Boolean);
    },
  },
  mounted() {
    this.$emit("ready");
  },
  methods: {
    ago, machineTitle, percent, plantClock, plantDay, plantTime, text, utc,
    load(data) {
      Object.assign(this, data);
    },
    isRecent(note) {
      return Boolean(note) && new Date(this.now) - new Date(note.at) < DAY;
    },
    clock(moment) {
      return `${plantClock(moment, this.zone)} ${zoneName(moment, this.zone)}`;
    },
  },
};
