// Asks before an action is run: what will happen, its fields, and a reason where one is required.
import { DialogFields, errorsByField, initialValues, submittedValues } from "alarmcast-fields";
import { text } from "alarmcast-format";

const TIMEOUT = 30; // seconds; a version is evaluated before it is promoted

export default {
  components: { DialogFields },
  template: `
    <dialog ref="dialog" class="ac-confirm" :aria-labelledby="id + '-title'" @close="closed" @cancel="busy && $event.preventDefault()">
      <form v-if="action" @submit.prevent="submit">
        <h2 :id="id + '-title'">{{ action.title }}</h2>
        <p v-for="line in action.lines" :key="line">{{ line }}</p>
        <ul v-if="action.reasons?.length" class="ac-reasons"><li v-for="line in action.reasons" :key="line">{{ line }}</li></ul>
        <dialog-fields :fields="action.fields" :values="values" :errors="errors" :id="id + '-'" />
        <label v-if="action.force" class="ac-check"><input type="checkbox" v-model="force" required /> {{ action.force }}</label>
        <label v-if="action.needs_reason" class="ac-labelled">{{ text("common.reason") }}
          <textarea class="ac-field" v-model.trim="reason" rows="3" maxlength="1000" required autofocus :aria-describedby="id + '-why'"></textarea>
          <small class="quiet" :id="id + '-why'">{{ text("common.reason.help") }}</small>
        </label>
        <p class="ac-bad" role="alert" v-if="error">{{ error }}</p>
        <div class="ac-buttons">
          <button type="button" class="ac-button" @click="close" :disabled="busy">{{ text("common.cancel") }}</button>
          <button type="submit" class="ac-button ac-primary" :disabled="busy || (action.needs_reason && !reason)">{{ busy ? "…" : action.button }}</button>
        </div>
      </form>
    </dialog>`,
  data() {
    return { action: null, values: {}, errors: {}, reason: "", force: false, error: "", busy: false, timer: null, id: `dialog-${Math.random().toString(36).slice(2)}` };
  },
  methods: {
    text,
    async ask(action) {
      Object.assign(this, { action, values: initialValues(action.fields), errors: {}, reason: "", force: false, error: "", busy: false });
      await this.$nextTick();
      this.$refs.dialog.showModal();
    },
    submit() {
      Object.assign(this, { busy: true, error: "", errors: {} });
      this.timer = setTimeout(() => this.refuse(text("common.no_response", { seconds: TIMEOUT })), TIMEOUT * 1000);
      const { key, fields } = this.action;
      this.$emit("action", { key, reason: this.reason, force: this.force, values: submittedValues(fields, this.values) });
    },
    refuse(detail, errors = []) {
      clearTimeout(this.timer);
      this.busy = false;
      const { byField, general } = errorsByField(this.action?.fields ?? [], errors);
      this.errors = byField;
      this.error = general ? detail : "";
      this.$nextTick(() => this.$el.querySelector("[aria-invalid]")?.focus());
    },
    close() {
      this.$refs.dialog.close();
    },
    closed() {
      clearTimeout(this.timer);
      this.action = null;
      this.busy = false;
    },
  },
};
