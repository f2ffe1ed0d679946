// Light, dark, or as the device is set; stored in this browser.
import { text } from "alarmcast-format";

const KEY = "alarmcast-theme";
const MODES = { auto: "auto", light: false, dark: true };
const SIGNS = { auto: "◑", light: "☀", dark: "☾" };

export default {
  template: `<button class="ac-button" @click="next" :aria-label="label" :title="label">{{ sign }} <span class="ac-theme-name">{{ name }}</span></button>`,
  data() {
    const stored = localStorage.getItem(KEY);
    return { theme: stored in MODES ? stored : "auto" };
  },
  computed: {
    sign() {
      return SIGNS[this.theme];
    },
    name() {
      return text(`common.theme.${this.theme}`);
    },
    label() {
      return text("common.theme", { name: this.name });
    },
  },
  mounted() {
    this.apply();
  },
  methods: {
    // The first click after "system" always changes what is seen.
    next() {
      const order = matchMedia("(prefers-color-scheme: dark)").matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
      this.theme = order[(order.indexOf(this.theme) + 1) % order.length];
      localStorage.setItem(KEY, this.theme);
      this.apply();
    },
    apply() {
      this.$q.dark.set(MODES[this.theme]);
    },
  },
};
