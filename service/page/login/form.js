// A form that the browser sends to the API: passwords never pass through the websocket of the page, and no script
// can read the session cookie.
import { text } from "alarmcast-format";

export default {
  template: `
    <form class="ac-panel ac-sign-in" @submit.prevent="send">
      <h1>{{ title }}</h1>
      <p class="quiet" v-for="note in notes" :key="note">{{ note }}</p>
      <label v-for="(field, index) in fields" :key="field.name" class="ac-entry">{{ field.label }}
        <input class="ac-field" :name="field.name" :type="field.type" :autocomplete="field.autocomplete" v-model="values[field.name]" required :autofocus="!index" autocapitalize="none" spellcheck="false" />
      </label>
      <p class="ac-bad" role="alert" v-if="error">{{ error }}</p>
      <div class="ac-buttons">
        <button class="ac-button ac-primary" :disabled="busy">{{ title }}</button>
        <a v-if="cancel" class="ac-button" :href="cancel">{{ text("common.cancel") }}</a>
      </div>
    </form>`,
  props: { title: String, notes: Array, fields: Array, address: String, next: String, confirm: Array, cancel: String },
  data() {
    return { values: {}, error: "", busy: false };
  },
  methods: {
    text,
    async send() {
      const [first, second] = this.confirm ?? [];
      if (first && this.values[first] !== this.values[second]) {
        this.error = text("login.mismatch");
        return;
      }
      this.busy = true;
      this.error = "";
      const body = Object.fromEntries(Object.entries(this.values).filter(([name]) => name !== second));
      try {
        const response = await fetch(this.address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
        if (response.ok) {
          const session = response.status === 204 ? {} : await response.json();
          location.assign(session.must_change ? "/password" : this.next);
          return;
        }
        this.error = (await response.json()).detail;
      } catch {
        this.error = text("login.unreachable");
      }
      this.busy = false;
    },
  },
};
