// Who the machine is, how it is, and in words whatever keeps its forecast from being trusted in full.
import { ago, machineTitle, percent, plantTime, presences, utc } from "alarmcast-format";

const STATES = {
  registered: "Nothing has been heard of it yet. Start its agent, or let an administrator load its history on the page Learning.",
  collecting: "It is heard, but not yet for long enough to learn from. It is learned by itself once there is enough; until then the fleet's model speaks for it.",
  learning: "It is being learned just now; until that is done the fleet's model speaks for it.",
  failed: "It was not learned, so the fleet's model speaks for it.",
  retired: "It has been retired: nothing is taken from it and nothing forecast for it. Its past stays below.",
};

const DAY = 86400000; // milliseconds

export default {
  template: `
    <section v-if="machine" class="ac-machine-head" aria-label="The machine">
      <div class="ac-head">
        <h1>{{ machineTitle(machine) }}</h1>
        <span class="quiet">{{ machine.site }}/{{ machine.machine }}</span>
        <span v-if="presence" :class="['ac-tag', presence.tone]" :title="heard ? 'last heard ' + both(heard) : ''"><span aria-hidden="true">{{ presence.sign }}</span>{{ presence.word }}</span>
        <span class="ac-tag quiet">{{ erased ? "erased" : machine.state }}</span>
        <a class="ac-button ac-end" :href="'/v1/alarms.csv?site=' + machine.site + '&machine=' + machine.machine" download>Alarms as CSV</a>
      </div>
      <p v-for="note in notes" :key="note" class="ac-warn">{{ note }}</p>
      <dl class="ac-figures ac-facts">
        <div><dt>Last heard</dt><dd :title="heard ? utc(heard) : ''">{{ heard ? ago(heard, now) : "never" }} <small v-if="heard">{{ plantTime(heard, zone) }}</small></dd></div>
        <div><dt>Last alarm</dt><dd :title="last ? utc(last.at) : ''">{{ last ? ago(last.at, now) : "none yet" }} <small v-if="last">{{ last.code }} {{ last.text }}</small></dd></div>
        <div><dt>Waiting at the machine</dt><dd :title="stateAt ? utc(stateAt) : ''">{{ spooled ?? "–" }} <small>{{ spooled === 1 ? "alarm" : "alarms" }} not yet sent{{ stateAt ? ", as of " + ago(stateAt, now) : "" }}</small></dd></div>
        <div v-if="forecast"><dt>Evidence heard</dt><dd>{{ percent(forecast.coverage) }} <small>{{ forecast.events_seen }} {{ forecast.events_seen === 1 ? "alarm" : "alarms" }} in {{ hours(forecast.window_start, forecast.window_end) }}</small></dd></div>
        <div v-if="forecast"><dt>Forecast until</dt><dd :title="utc(forecast.as_of) + ' to ' + utc(forecast.horizon_end)">{{ clock(forecast.horizon_end) }} <small>made for {{ plantTime(forecast.as_of, zone) }}</small></dd></div>
        <div><dt>Model</dt><dd>{{ forecast ? forecast.model_version : "none yet" }} <small v-if="forecast" :title="machine.learned_at ? utc(machine.learned_at) : ''">{{ knows }}</small></dd></div>
      </dl>
    </section>`,
  data() {
    return { machine: null, card: null, forecast: null, now: new Date().toISOString() };
  },
  computed: {
    zone() {
      return this.machine.time_zone;
    },
    presence() {
      if (this.machine.state === "retired") return null;
      return presences[this.card?.presence ?? "never"];
    },
    erased() {
      return this.machine.state === "retired" && (this.machine.reason ?? "").startsWith("Erased");
    },
    heard() {
      return this.card?.last_seen_at ?? this.machine.agent?.last_seen_at ?? null;
    },
    last() {
      return this.card?.last_alarm ?? null;
    },
    spooled() {
      return this.machine.agent?.spooled ?? null;
    },
    stateAt() {
      return this.machine.agent?.state_at ?? null;
    },
    knows() {
      if (!this.forecast.learned) return "the fleet's; it has not learned this machine";
      return this.machine.learned_at ? `has learned it, ${plantTime(this.machine.learned_at, this.zone)}` : "has learned it";
    },
    notes() {
      const state = this.erased
        ? this.machine.reason.replace("Erased", "It has been erased with all that it told") + " Nothing is taken from it and nothing forecast for it."
        : [STATES[this.machine.state], this.machine.reason].filter(Boolean).join(" ");
      const notes = state ? [state] : [];
      if (this.forecast && !this.heard && this.machine.state !== "retired") {
        notes.push("Never connected: no agent of this machine has ever connected. What is below is computed from its imported history alone and says nothing about the machine now. Start its agent.");
        return notes;
      }
      if (this.forecast?.status === "warming_up")
        notes.push(`Warming up: the machine was heard for only ${percent(this.forecast.coverage)} of the ${this.hours(this.forecast.window_start, this.forecast.window_end)} that a forecast looks back on. The rest counts as unknown; trust grows by itself while it is heard.`);
      if (this.forecast?.status === "stale")
        notes.push(`Stale: the machine's agent ${this.heard ? "was last heard " + ago(this.heard, this.now) : "has not been heard"}. What happened since is unknown, so this forecast may be out of date. Look at the agent and at its line to the broker.`);
      if (this.card?.presence === "silent")
        notes.push("Silent: its agent is online, but by this machine's own rhythm an alarm should have come by now. See whether it stands still, or whether its alarms no longer reach the agent.");
      const agent = this.machine.state === "retired" ? null : this.machine.agent;
      if (agent?.skipped && this.recent(agent.last_skipped))
        notes.push(`${agent.skipped.toLocaleString("en")} ${agent.skipped === 1 ? "row" : "rows"} of the source could not be read as an alarm, so what they say is not stored.${this.lastNote(agent.last_skipped)} Check the format of the source: a time like 2026-11-16 08:00:00, a comma, and a whole number as alarm.`);
      if (this.recent(agent?.warning)) notes.push(`Its agent reports: ${agent.warning.text} (${this.both(agent.warning.at)})`);
      if (this.recent(agent?.duplicate)) notes.push(`${agent.duplicate.text} (${this.both(agent.duplicate.at)})`);
      return notes;
    },
  },
  mounted() {
    this.$emit("ready");
  },
  methods: {
    ago, machineTitle, percent, plantTime, utc,
    load(told) {
      Object.assign(this, told);
    },
    recent(note) {
      return Boolean(note) && new Date(this.now) - new Date(note.at) < DAY;
    },
    lastNote(note) {
      return note ? ` Last: ${note.text} (${this.both(note.at)}).` : "";
    },
    both(moment) {
      return `${plantTime(moment, this.zone)}, ${utc(moment)}`;
    },
    clock(moment) {
      return plantTime(moment, this.zone).split(", ").at(-1); // with its zone
    },
    hours(start, end) {
      const minutes = Math.round((new Date(end) - new Date(start)) / 60000);
      return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
    },
  },
};
