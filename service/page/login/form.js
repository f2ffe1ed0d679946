// A form that the browser itself sends to the API, so that a password never passes through the page's own
// connection and the session's cookie is set where no script can read it.
export default {
  template: `
    <form class="ac-panel ac-sign-in" @submit.prevent="send">
      <h1>{{ title }}</h1>
      <p class="quiet" v-if="note">{{ note }}</p>
      <label v-for="one in fields" :key="one.name" class="ac-entry">{{ one.label }}
        <input class="ac-field" :name="one.name" :type="one.type" :autocomplete="one.autocomplete" v-model="typed[one.name]" required :autofocus="one === fields[0]" autocapitalize="none" spellcheck="false" />
      </label>
      <p class="ac-bad" role="alert" v-if="trouble">{{ trouble }}</p>
      <button class="ac-button ac-main-deed" :disabled="busy">{{ deed }}</button>
    </form>`,
  props: { title: String, note: String, deed: String, fields: Array, address: String, next: String, repeat: Array },
  data() {
    return { typed: {}, trouble: "", busy: false };
  },
  methods: {
    async send() {
      const [first, second] = this.repeat ?? [];
      if (first && this.typed[first] !== this.typed[second]) {
        this.trouble = "The new password and its repetition differ; type both again.";
        return;
      }
      this.busy = true;
      this.trouble = "";
      const body = Object.fromEntries(Object.entries(this.typed).filter(([name]) => name !== second));
      try {
        const answer = await fetch(this.address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
        if (answer.ok) {
          const told = answer.status === 204 ? {} : await answer.json();
          location.assign(told.must_change ? "/password" : this.next);
          return;
        }
        this.trouble = (await answer.json()).detail;
      } catch {
        this.trouble = "The service does not answer; try again in a moment.";
      }
      this.busy = false;
    },
  },
};
