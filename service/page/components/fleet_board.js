// Every machine as a card. The server sends all cards once and then changed cards only; the browser filters,
// sorts and searches.
import { ago, formatLift, machineTitle, percent, plantTime, presenceTag, severitySign, severityText, text } from "alarmcast-format";

const AWAY = new Set(["stale", "silent", "offline"]);
const STATES = new Set(["registered", "collecting", "learning", "failed"]);
const NOTABLE_LIFT = 1.5; // times the usual rate
const BATCH = 60; // cards drawn at once; more follow while scrolling

const byName = (a, b) => a.key.localeCompare(b.key);
const ORDERS = {
  probability: (a, b) => (a.presence === "never") - (b.presence === "never") || b.urgency - a.urgency || AWAY.has(b.presence) - AWAY.has(a.presence) || maxProbability(b) - maxProbability(a) || byName(a, b),
  name: byName,
  alarm: (a, b) => (b.last_alarm?.at ?? "").localeCompare(a.last_alarm?.at ?? "") || byName(a, b),
};

function maxProbability(card) {
  return Math.max(0, ...card.likely.map((alarm) => alarm.probability));
}

export default {
  template: `
    <section>
      <div class="ac-empty-state" v-if="loaded && !total">
        <h2>{{ text("fleet.empty") }}</h2>
        <template v-if="may_enrol">
          <p><a href="/learning">{{ text("fleet.empty.enrol") }}</a>. {{ text("fleet.empty.steps") }}</p>
          <p>{{ text("fleet.empty.demo") }} <code>scripts/demo</code></p>
        </template>
        <p v-else>{{ text("fleet.empty.ask_admin") }}</p>
      </div>
      <p class="ac-warn" v-if="unregistered.length" role="status">
        {{ text("fleet.unregistered", { count: unregistered.length }) }}
        <template v-for="(machine, index) in unregistered.slice(0, 5)" :key="machine.site + '/' + machine.machine">{{ index ? ", " : "" }}<a v-if="may_enrol" :href="'/learning?site=' + machine.site + '&machine=' + machine.machine">{{ machine.site }}/{{ machine.machine }}</a><template v-else>{{ machine.site }}/{{ machine.machine }}</template></template>{{ unregistered.length > 5 ? " …" : "" }}.
        <template v-if="!may_enrol">{{ text("fleet.unregistered.ask_admin", { count: unregistered.length }) }}</template>
      </p>
      <template v-if="loaded && total">
        <div class="ac-tools" role="search" :aria-label="text('fleet.filters')">
          <label>{{ text("fleet.search") }} <input type="search" v-model.trim="search" :placeholder="text('fleet.search.hint')" /></label>
          <label>{{ text("fleet.site") }} <select v-model="site"><option value="">{{ text("fleet.site.all") }}</option><option v-for="name in sites" :key="name">{{ name }}</option></select></label>
          <label>{{ text("fleet.filter") }} <select v-model="filter"><option value="">{{ text("fleet.filter.all") }}</option><option value="forecast">{{ text("fleet.filter.forecast") }}</option><option value="away">{{ text("fleet.filter.away") }}</option></select></label>
          <label>{{ text("fleet.sort") }} <select v-model="order"><option v-for="name in orders" :key="name" :value="name">{{ text("fleet.sort." + name) }}</option></select></label>
          <label>{{ text("fleet.view") }} <select v-model="view"><option value="cards">{{ text("fleet.view.cards") }}</option><option value="list">{{ text("fleet.view.list") }}</option></select></label>
          <span class="quiet small" role="status">{{ summary }}</span>
        </div>
        <p class="ac-legend quiet small" aria-hidden="true">
          <span><i class="ac-legend-bar"></i> {{ text("fleet.legend.bar") }}</span>
          <span><i class="ac-legend-usual"></i> {{ text("fleet.legend.usual") }}</span>
          <span>{{ text("fleet.legend.lift") }}</span>
          <span><i class="ac-legend-edge is-high"></i> {{ text("fleet.legend.high", { lift: notableLift }) }}</span>
          <span><i class="ac-legend-edge"></i> {{ text("fleet.legend.forecast") }}</span>
          <span><i class="ac-legend-edge is-away"></i> {{ text("fleet.legend.away") }}</span>
        </p>
        <p class="ac-empty" v-if="!found.length">{{ text("fleet.no_match") }}</p>
      </template>
      <div :class="['ac-fleet', view === 'list' ? 'as-list' : '']">
        <a v-for="card in found.slice(0, shown)" :key="card.key" :href="'/machines/' + card.key" :class="['ac-card', tone(card)]">
          <div class="ac-top">
            <div>
              <h2>{{ machineTitle(card) }}</h2>
              <span class="quiet small">{{ card.key }}</span>
            </div>
            <span :class="['ac-tag', presenceTag(card.presence).tone]" :title="presenceHelp(card)"><span aria-hidden="true">{{ presenceTag(card.presence).sign }}</span>{{ presenceTag(card.presence).label }}</span>
          </div>
          <ul class="ac-card-alarms" v-if="card.likely.length">
            <li class="quiet small" aria-hidden="true"><span>{{ text("fleet.card.alarm") }}</span><span></span><span class="number">{{ text("fleet.card.probability") }}</span><span class="number">{{ text("fleet.card.lift") }}</span></li>
            <li v-for="alarm in card.likely" :key="alarm.code">
              <span :class="['ac-name', alarm.level !== 'usual' && !alarm.shelved ? '' : 'quiet']" :title="alarm.code + ' ' + alarm.text"><span :class="'ac-sev-' + alarm.severity" :title="severityText(alarm.severity)" aria-hidden="true">{{ severitySign(alarm.severity) }}</span> {{ alarm.text }}</span>
              <span class="ac-meter" :title="meter(alarm)"><i :style="{ width: 100 * alarm.probability + '%' }"></i><b v-if="alarm.base_rate !== null" :style="{ left: 'calc(' + 100 * alarm.base_rate + '% - 1px)' }"></b></span>
              <span class="ac-value">{{ percent(alarm.probability) }}</span>
              <span class="ac-lift" v-if="alarm.shelved" :title="text('fleet.card.shelved.help')">{{ text("fleet.card.shelved") }}</span>
              <span class="ac-lift" v-else :title="usual(alarm)">{{ formatLift(alarm.lift) || "–" }}</span>
            </li>
          </ul>
          <p class="ac-empty" v-else-if="card.presence === 'never'">{{ text("fleet.card.no_forecast.never") }}</p>
          <p class="ac-empty" v-else>{{ text("fleet.card.no_forecast") }}</p>
          <div :title="hourlyTotal(card)">
            <div class="ac-hourly" role="img" :aria-label="hourlyTotal(card)">
              <i v-for="(count, hour) in card.hourly_counts" :key="hour" :class="{ 'is-busy': count > 0 }" :style="{ height: height(count, card.hourly_counts) }"></i>
            </div>
            <span class="quiet small" aria-hidden="true">{{ text("fleet.card.hourly", { hours: card.hourly_counts.length }) }}</span>
          </div>
          <div class="ac-card-foot">
            <span v-if="card.last_alarm" :title="plantTime(card.last_alarm.at, card.time_zone)">{{ text("fleet.card.last_alarm", { ago: ago(card.last_alarm.at, now), alarm: card.last_alarm.text }) }}</span>
            <span v-else>{{ text("fleet.card.no_alarm") }}</span>
            <span v-if="card.shelved.length" class="ac-shelved" :title="shelvedList(card, true)">‖ {{ text("fleet.card.shelved.count", { count: card.shelved.length }) }}<span class="sr-only">{{ shelvedList(card, false) }}</span></span>
            <span v-if="hasState(card)">{{ text("fleet.state." + card.state) }}</span>
          </div>
        </a>
      </div>
      <div ref="end" style="height: 1px"></div>
    </section>`,
  props: { may_enrol: Boolean },
  data() {
    return {
      loaded: false, cards: new Map(), revision: 0, sites: [], unregistered: [], now: new Date().toISOString(), shown: BATCH,
      search: "", site: "", filter: "", order: "probability", view: "cards", orders: Object.keys(ORDERS), notableLift: NOTABLE_LIFT,
    };
  },
  computed: {
    all() {
      return this.revision >= 0 ? [...this.cards.values()] : [];
    },
    total() {
      return this.all.length;
    },
    found() {
      const wanted = this.search.toLowerCase();
      const searchable = (card) => [card.key, card.name, card.last_alarm?.text, ...card.likely.map((alarm) => `${alarm.code} ${alarm.text}`)].join(" ").toLowerCase();
      const matches = (card) =>
        (!this.site || card.site === this.site) &&
        (this.filter !== "forecast" || card.expected > 0) &&
        (this.filter !== "away" || AWAY.has(card.presence)) &&
        (!wanted || searchable(card).includes(wanted));
      return this.all.filter(matches).sort(ORDERS[this.order]);
    },
    summary() {
      const count = (matches) => this.all.filter(matches).length;
      const forecast = count((card) => card.expected > 0);
      const away = count((card) => AWAY.has(card.presence));
      const never = count((card) => card.presence === "never");
      return [
        text("fleet.summary", { count: this.found.length, total: this.total }),
        forecast ? text("fleet.summary.forecast", { count: forecast }) : text("fleet.summary.no_forecast"),
        away && text("fleet.summary.away", { count: away }),
        never && text("fleet.summary.never", { count: never }),
      ].filter(Boolean).join(" · ");
    },
  },
  mounted() {
    this.observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting) && this.shown < this.found.length) this.shown += BATCH;
    }, { rootMargin: "800px" });
    this.observer.observe(this.$refs.end);
    this.$emit("ready");
  },
  updated() {
    // The end may still be visible after drawing; observing it again draws more.
    this.observer.unobserve(this.$refs.end);
    this.observer.observe(this.$refs.end);
  },
  unmounted() {
    this.observer.disconnect();
  },
  methods: {
    ago, formatLift, machineTitle, percent, plantTime, presenceTag, severitySign, severityText, text,
    load(overview) {
      if (overview.complete) this.cards.clear();
      for (const card of overview.cards) this.cards.set(`${card.site}/${card.machine}`, Object.freeze({ ...card, key: `${card.site}/${card.machine}` }));
      for (const key of overview.gone) this.cards.delete(key);
      this.sites = overview.sites;
      this.unregistered = overview.unregistered;
      this.now = overview.plant_time;
      this.revision += 1;
      this.loaded = true;
    },
    presenceHelp(card) {
      const { help } = presenceTag(card.presence);
      return card.last_seen_at ? text("fleet.card.last_message", { help, time: plantTime(card.last_seen_at, card.time_zone) }) : help;
    },
    tone(card) {
      if (AWAY.has(card.presence)) return "is-away";
      if (!card.expected) return "";
      const notable = (alarm) => alarm.expected && !alarm.shelved && alarm.severity === "high" && (alarm.lift ?? Infinity) >= NOTABLE_LIFT;
      return card.likely.some(notable) ? "is-high" : "is-forecast";
    },
    usual(alarm) {
      return alarm.base_rate === null ? text("fleet.card.no_usual") : text("fleet.card.usual", { rate: percent(alarm.base_rate) });
    },
    meter(alarm) {
      return text("fleet.card.meter", { probability: percent(alarm.probability), usual: this.usual(alarm), level: text("fleet.level." + alarm.level) });
    },
    hasState(card) {
      return STATES.has(card.state);
    },
    shelvedList(card, codes) {
      return text("fleet.card.shelved.list", { alarms: card.shelved.map((alarm) => (codes ? `${alarm.code} ${alarm.text}` : alarm.text)).join(", ") });
    },
    hourlyTotal(card) {
      const count = card.hourly_counts.reduce((sum, hour) => sum + hour, 0);
      return text("fleet.card.hourly.total", { count, hours: card.hourly_counts.length });
    },
    height(count, counts) {
      return count ? `${Math.max(12, (100 * count) / Math.max(4, ...counts))}%` : "1px";
    },
  },
};
