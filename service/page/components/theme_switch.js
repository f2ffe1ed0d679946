// Light, dark, or as the device says; remembered in this browser.
const KEY = "alarmcast-theme";
const CHOICES = ["auto", "light", "dark"];
const SET = { auto: "auto", light: false, dark: true };

export default {
  template: `<button class="ac-button" @click="next" :aria-label="'Theme: ' + choice + '. Change it.'" :title="'Theme: ' + choice">{{ sign }}</button>`,
  data() {
    const kept = localStorage.getItem(KEY);
    return { choice: CHOICES.includes(kept) ? kept : "auto" };
  },
  computed: {
    sign() {
      return { auto: "◑", light: "☀", dark: "☾" }[this.choice];
    },
  },
  mounted() {
    this.apply();
  },
  methods: {
    next() {
      this.choice = CHOICES[(CHOICES.indexOf(this.choice) + 1) % CHOICES.length];
      localStorage.setItem(KEY, this.choice);
      this.apply();
    },
    apply() {
      this.$q.dark.set(SET[this.choice]);
    },
  },
};
