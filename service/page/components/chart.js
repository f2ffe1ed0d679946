// An ECharts chart in the page's colours. Options come from the server as plain data: a colour may be written as
// "var(--ink)" and follows light and dark, a formatter as "@percent" and is looked up here, so no code is sent.
import { echarts } from "nicegui-echart";
import { percent, plantClock, plantDay, plantTime, utc, zoneName } from "alarmcast-format";

function formatters(zone) {
  const when = (value) => `${plantTime(value, zone)}\n${utc(value)}`;
  return {
    "@percent": (value) => percent(typeof value === "object" ? value.value : value),
    "@plantTime": (value) => plantTime(value, zone),
    "@plantAxis": (value) => (new Date(value).getUTCMinutes() || plantClock(value, zone) !== "00:00" ? plantClock(value, zone) : plantDay(value, zone)),
    "@plantDay": (value) => plantDay(value, zone),
    // A point may bring its own words in `tip`; they are text, never markup.
    "@tip": (at) => {
      const one = Array.isArray(at) ? at[0] : at;
      const data = one.data ?? {};
      const lines = [data.tip ?? one.name];
      if (data.at) lines.push(when(data.at));
      return lines.filter(Boolean).map(escape).join("<br>").replaceAll("\n", "<br>");
    },
    "@ago": (minutes) => (minutes ? `${-minutes} min ago` : "now"),
    "@agoTip": (points) => {
      const [minutes] = points[0].value;
      const lines = points.map((one) => `${one.seriesName}: ${one.value[1] === null ? "not known" : one.value[1].toLocaleString("en-GB", { maximumFractionDigits: 2 })}`);
      return [minutes > -0.05 ? "now" : `${(-minutes).toFixed(1)} min ago`, ...lines].map(escape).join("<br>");
    },
    "@number": (value) => (typeof value === "number" ? value.toLocaleString("en-GB", { maximumFractionDigits: 2 }) : value),
  };
}

function escape(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

export default {
  template: `<div class="ac-chart" role="img" :aria-label="label" tabindex="0"></div>`,
  props: { options: Object, label: String, zone: { type: String, default: "UTC" } },
  mounted() {
    this.draw();
    this.sizes = new ResizeObserver(() => this.chart?.resize());
    this.sizes.observe(this.$el);
    // Dark is a class of the body, whoever set it.
    this.themes = new MutationObserver(() => this.draw());
    this.themes.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  },
  beforeUnmount() {
    this.sizes.disconnect();
    this.themes.disconnect();
    this.chart?.dispose();
  },
  methods: {
    draw() {
      const dark = document.body.classList.contains("body--dark");
      if (this.chart && this.dark !== dark) {
        this.chart.dispose();
        this.chart = null;
      }
      this.dark = dark;
      if (!this.chart) {
        this.chart = echarts.init(this.$el, null, { renderer: "svg" });
        this.chart.on("click", (one) => this.$emit("picked", { name: one.name, series: one.seriesName, data: one.data, value: one.value }));
        this.chart.on("datazoom", () => {
          const zoom = this.chart.getOption().dataZoom?.[0];
          this.zoom = zoom && { start: zoom.start, end: zoom.end };
        });
      }
      const options = this.resolved(this.options);
      this.nameZone(options);
      // By its name: text is measured on a canvas, which does not know what "inherit" means.
      options.textStyle = { fontFamily: getComputedStyle(this.$el).fontFamily, ...options.textStyle };
      options.animation ??= false;
      if (this.zoom && options.dataZoom) options.dataZoom = options.dataZoom.map((one) => ({ ...one, ...this.zoom }));
      this.chart.setOption(options, { notMerge: true });
    },
    update_chart() {
      this.draw();
    },
    // An axis of moments says by which clock it is to be read.
    nameZone(options) {
      const axis = options.xAxis;
      if (axis?.type !== "time" || axis.name) return;
      axis.name = `plant time, ${zoneName(axis.max ?? Date.now(), this.zone)}`;
      axis.nameLocation = "middle";
      axis.nameGap = 24;
      axis.nameTextStyle = { color: axis.axisLabel?.color, fontSize: 11 };
    },
    resolved(value) {
      const styles = getComputedStyle(document.body);
      const known = formatters(this.zone);
      const resolve = (one) => {
        if (typeof one === "string") {
          if (one.startsWith("@") && known[one]) return known[one];
          const name = /^var\((--[a-z-]+)\)$/.exec(one);
          return name ? styles.getPropertyValue(name[1]).trim() : one;
        }
        if (Array.isArray(one)) return one.map(resolve);
        if (one && typeof one === "object") return Object.fromEntries(Object.entries(one).map(([key, inner]) => [key, resolve(inner)]));
        return one;
      };
      return resolve(value);
    },
  },
};
