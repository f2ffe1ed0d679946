// An ECharts chart in the colours of the page. Options are plain data from the server: "var(--ink)" is a colour of
// the theme, "@percent" a formatter that is looked up here.
import { echarts } from "nicegui-echart";
import { percent, plantClock, plantDay, plantTime, text, utc, zoneName } from "alarmcast-format";

function formatters(zone) {
  const when = (value) => `${plantTime(value, zone)}\n${utc(value)}`;
  return {
    "@percent": (value) => percent(typeof value === "object" ? value.value : value),
    "@plantTime": (value) => plantTime(value, zone),
    "@plantAxis": (value) => (new Date(value).getUTCMinutes() || plantClock(value, zone) !== "00:00" ? plantClock(value, zone) : plantDay(value, zone)),
    "@plantDay": (value) => plantDay(value, zone),
    // The text in a point's `tip` is never markup.
    "@tip": (points) => {
      const point = Array.isArray(points) ? points[0] : points;
      const data = point.data ?? {};
      const lines = [data.tip ?? point.name];
      if (data.at) lines.push(when(data.at));
      return lines.filter(Boolean).map(escape).join("<br>").replaceAll("\n", "<br>");
    },
    "@ago": (minutes) => (minutes ? text("common.ago.minutes", { count: -minutes }) : text("common.chart.now")),
    "@agoTip": (points) => {
      const [minutes] = points[0].value;
      const lines = points.map((point) => `${point.seriesName}: ${point.value[1] === null ? text("common.chart.no_data") : point.value[1].toLocaleString("en-GB", { maximumFractionDigits: 2 })}`);
      return [minutes > -0.05 ? text("common.chart.now") : text("common.ago.minutes", { count: (-minutes).toFixed(1) }), ...lines].map(escape).join("<br>");
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
    // The dark theme is a class of the body.
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
        this.chart.on("click", (point) => this.$emit("picked", { name: point.name, series: point.seriesName, data: point.data, value: point.value }));
        this.chart.on("datazoom", () => {
          const zoom = this.chart.getOption().dataZoom?.[0];
          this.zoom = zoom && { start: zoom.start, end: zoom.end };
        });
      }
      const options = this.resolved(this.options);
      this.nameZone(options);
      // The name of the font: text is measured on a canvas, which does not know "inherit".
      options.textStyle = { fontFamily: getComputedStyle(this.$el).fontFamily, ...options.textStyle };
      options.animation ??= false;
      if (this.zoom && options.dataZoom) options.dataZoom = options.dataZoom.map((zoom) => ({ ...zoom, ...this.zoom }));
      this.chart.setOption(options, { notMerge: true });
    },
    update_chart() {
      this.draw();
    },
    // A time axis names its zone.
    nameZone(options) {
      const axis = options.xAxis;
      if (axis?.type !== "time" || axis.name) return;
      axis.name = text("common.chart.axis", { zone: zoneName(axis.max ?? Date.now(), this.zone) });
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
