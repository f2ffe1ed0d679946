// Every machine as a card. The server sends all cards once and then only those that changed; filtering, sorting
// and searching happen here, so that they are instant and cost the service nothing.
import { ago, machineTitle, percent, plantTime, presences, severitySigns, times, utc } from "alarmcast-format";

const AWAY = new Set(["stale", "silent", "offline"]);
const STATES = {
  registered: "waits for its first alarm",
  collecting: "collecting what it needs to be learned; the fleet's model speaks for it",
  learning: "being learned",
  failed: "not learned; the fleet's model speaks for it",
};
const NEWS = 1.5; // times as likely as usual
const AT_FIRST = 60; // cards drawn at once; the rest follow as they are scrolled to

const byName = (a, b) => a.key.localeCompare(b.key);
const ORDERS = {
  urgency: (a, b) => (a.presence === "never") - (b.presence === "never") || b.urgency - a.urgency || AWAY.has(b.presence) - AWAY.has(a.presence) || likeliest(b) - likeliest(a) || byName(a, b),
  name: byName,
  alarm: (a, b) => (b.last_alarm?.at ?? "").localeCompare(a.last_alarm?.at ?? "") || byName(a, b),
};

function likeliest(card) {
  return Math.max(0, ...card.likely.map((one) => one.probability));
}

export default {
  template: `
    <section>
      <div class="ac-teach" v-if="loaded && !total">
        <h2>No machines yet</h2>
        <template v-if="may_enrol">
          <p><a href="/learning">Enrol the first machine</a>, with its past if there is a log, and point its agent at the broker.</p>
          <p>To see a whole plant first, run <code>scripts/demo</code>.</p>
        </template>
        <p v-else>An administrator has to enrol the first machine.</p>
      </div>
      <p class="ac-warn" v-if="unregistered.length" role="status">
        {{ unregistered.length === 1 ? "A machine speaks that is" : unregistered.length + " machines speak that are" }} not enrolled, and nothing of it is lost:
        <template v-for="(one, place) in unregistered.slice(0, 5)" :key="one.site + '/' + one.machine">{{ place ? ", " : "" }}<a v-if="may_enrol" :href="'/learning?site=' + one.site + '&machine=' + one.machine">{{ one.site }}/{{ one.machine }}</a><template v-else>{{ one.site }}/{{ one.machine }}</template></template>{{ unregistered.length > 5 ? " …" : "" }}.
        <template v-if="!may_enrol">An administrator can enrol {{ unregistered.length === 1 ? "it" : "them" }}.</template>
      </p>
      <div class="ac-tools" role="search" aria-label="Filter machines" v-if="loaded && total">
        <label>Search <input type="search" v-model.trim="search" placeholder="machine or alarm" /></label>
        <label>Site <select v-model="site"><option value="">all sites</option><option v-for="one in sites" :key="one">{{ one }}</option></select></label>
        <label>Show <select v-model="only"><option value="">all machines</option><option value="expecting">that expect an alarm</option><option value="away">that are not heard</option></select></label>
        <label>Sort by <select v-model="order"><option value="urgency">urgency</option><option value="name">name</option><option value="alarm">last alarm</option></select></label>
        <label>As <select v-model="shape"><option value="cards">cards</option><option value="rows">rows</option></select></label>
        <span class="quiet small" role="status">{{ summary }}</span>
      </div>
      <p class="ac-calm" v-if="loaded && total && !found.length" style="margin-top: 1rem">No machine fits; change the search or the filter.</p>
      <div :class="['ac-fleet', shape === 'rows' ? 'as-rows' : '']" style="margin-top: .8rem">
        <a v-for="card in found.slice(0, shown)" :key="card.key" :href="'/machines/' + card.key" :class="['ac-card', tone(card)]">
          <div class="ac-top">
            <div style="min-width: 0">
              <h2>{{ machineTitle(card) }}</h2>
              <span class="quiet small">{{ card.key }}</span>
            </div>
            <span :class="['ac-tag', presence(card).tone]" :title="card.last_seen_at ? 'last message from its agent ' + plantTime(card.last_seen_at, card.time_zone) : ''"><span aria-hidden="true">{{ presence(card).sign }}</span>{{ presence(card).word }}</span>
          </div>
          <ul class="ac-likely" v-if="card.likely.length">
            <li v-for="one in card.likely" :key="one.code">
              <span :class="['ac-what', one.expected && !one.shelved ? '' : 'ac-not']" :title="one.code + ' ' + one.text"><span :class="'ac-sev-' + one.severity" :title="one.severity + ' severity'" aria-hidden="true">{{ signs[one.severity] }}</span> {{ one.text }}</span>
              <span class="ac-meter" :title="meter(one)"><i :style="{ width: 100 * one.probability + '%' }"></i><b v-if="one.base_rate !== null" :style="{ left: 'calc(' + 100 * one.base_rate + '% - 1px)' }"></b></span>
              <span class="ac-share">{{ percent(one.probability) }}</span>
              <span class="ac-lift" v-if="one.shelved" title="shelved: no notification of it is sent, and it is left out of the alarm figures">shelved</span>
              <span class="ac-lift" v-else :title="one.base_rate === null ? 'no past to compare with' : 'usually ' + percent(one.base_rate)">{{ times(one.lift) }}</span>
            </li>
          </ul>
          <p class="ac-calm" v-else-if="card.presence === 'never'">No forecast: its agent has never connected.</p>
          <p class="ac-calm" v-else>No forecast yet.</p>
          <div class="ac-strip" role="img" :aria-label="sum(card.hourly_counts) + ' alarms in the last 28 hours'" :title="sum(card.hourly_counts) + ' alarms in the last 28 hours, hour by hour'">
            <i v-for="(count, hour) in card.hourly_counts" :key="hour" :class="{ 'is-busy': count > 0 }" :style="{ height: height(count, card.hourly_counts) }"></i>
          </div>
          <div class="ac-foot">
            <span v-if="card.last_alarm" :title="plantTime(card.last_alarm.at, card.time_zone)">{{ ago(card.last_alarm.at, now) }}: {{ card.last_alarm.text }}</span>
            <span v-else>no alarm yet</span>
            <span v-if="card.shelved.length" class="ac-shelved" :title="'shelved: ' + card.shelved.map((one) => one.code + ' ' + one.text).join(', ')">‖ {{ card.shelved.length }} shelved<span class="only-read">: {{ card.shelved.map((one) => one.text).join(", ") }}</span></span>
            <span v-if="note(card)" :title="note(card)">{{ card.state }}</span>
          </div>
        </a>
      </div>
      <div ref="end" style="height: 1px"></div>
    </section>`,
  props: { may_enrol: Boolean },
  data() {
    return {
      loaded: false, cards: new Map(), version: 0, sites: [], unregistered: [], now: new Date().toISOString(), shown: AT_FIRST,
      search: "", site: "", only: "", order: "urgency", shape: "cards", signs: severitySigns,
    };
  },
  computed: {
    all() {
      return this.version >= 0 ? [...this.cards.values()] : [];
    },
    total() {
      return this.all.length;
    },
    found() {
      const words = this.search.toLowerCase();
      const fits = (card) =>
        (!this.site || card.site === this.site) &&
        (this.only !== "expecting" || card.expected > 0) &&
        (this.only !== "away" || AWAY.has(card.presence)) &&
        (!words || [card.key, card.name, card.last_alarm?.text, ...card.likely.map((one) => `${one.code} ${one.text}`)].join(" ").toLowerCase().includes(words));
      return this.all.filter(fits).sort(ORDERS[this.order]);
    },
    summary() {
      const expecting = this.all.filter((card) => card.expected > 0).length;
      const away = this.all.filter((card) => AWAY.has(card.presence)).length;
      const parts = [`${this.found.length} of ${this.total} machines`];
      parts.push(expecting ? `${expecting} expect an alarm` : "nothing expected");
      if (away) parts.push(`${away} not heard`);
      const never = this.all.filter((card) => card.presence === "never").length;
      if (never) parts.push(`${never} never connected`);
      return parts.join(" · ");
    },
  },
  mounted() {
    this.watcher = new IntersectionObserver((seen) => {
      if (seen.some((one) => one.isIntersecting) && this.shown < this.found.length) this.shown += AT_FIRST;
    }, { rootMargin: "800px" });
    this.watcher.observe(this.$refs.end);
    this.$emit("ready");
  },
  updated() {
    // What was drawn may not have pushed the end out of sight; looking again asks for more.
    this.watcher.unobserve(this.$refs.end);
    this.watcher.observe(this.$refs.end);
  },
  unmounted() {
    this.watcher.disconnect();
  },
  methods: {
    ago, machineTitle, percent, plantTime, times, utc,
    load(overview) {
      if (overview.complete) this.cards.clear();
      for (const card of overview.cards) this.cards.set(`${card.site}/${card.machine}`, Object.freeze({ ...card, key: `${card.site}/${card.machine}` }));
      for (const key of overview.gone) this.cards.delete(key);
      this.sites = overview.sites;
      this.unregistered = overview.unregistered;
      this.now = overview.plant_time;
      this.version += 1;
      this.loaded = true;
    },
    presence(card) {
      return presences[card.presence];
    },
    tone(card) {
      if (AWAY.has(card.presence)) return "is-away";
      if (!card.expected) return "";
      // Orange is for news: a grave alarm that is clearly likelier than it usually is here.
      const news = (one) => one.expected && !one.shelved && one.severity === "high" && (one.lift ?? Infinity) >= NEWS;
      return card.likely.some(news) ? "is-expecting-high" : "is-expecting";
    },
    meter(one) {
      const usual = one.base_rate === null ? "no past to compare with" : `usually ${percent(one.base_rate)}`;
      return `${percent(one.probability)} within the horizon, ${usual}, expected from ${percent(one.threshold)}`;
    },
    note(card) {
      return STATES[card.state];
    },
    sum(counts) {
      return counts.reduce((all, one) => all + one, 0);
    },
    height(count, strip) {
      return count ? `${Math.max(12, (100 * count) / Math.max(4, ...strip))}%` : "1px";
    },
  },
};
