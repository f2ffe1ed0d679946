// Asks before a deed is done and says what will happen; a reason, where there must be one, is kept with the change.
import { DeedFields, begun, placed, sent } from "alarmcast-fields";

const PATIENCE = 30000; // milliseconds; a version is looked at before it serves
const NO_ANSWER = "Nothing has answered for 30 seconds. It may have been done all the same: look at the page again, then try again.";

export default {
  components: { DeedFields },
  template: `
    <dialog ref="dialog" class="ac-ask" :aria-labelledby="id + '-title'" @close="closed" @cancel="busy && $event.preventDefault()">
      <form v-if="deed" @submit.prevent="submit">
        <h2 :id="id + '-title'">{{ deed.title }}</h2>
        <p v-for="line in deed.lines" :key="line">{{ line }}</p>
        <ul v-if="deed.reasons?.length" class="ac-reasons"><li v-for="line in deed.reasons" :key="line">{{ line }}</li></ul>
        <deed-fields :fields="deed.fields" :typed="typed" :errors="errors" :id="id + '-'" />
        <label v-if="deed.force" class="ac-check"><input type="checkbox" v-model="force" required /> {{ deed.force }}</label>
        <label v-if="deed.needs_reason" class="ac-labelled">Reason
          <textarea class="ac-field" v-model.trim="reason" rows="3" maxlength="1000" required autofocus :aria-describedby="id + '-why'"></textarea>
          <small class="quiet" :id="id + '-why'">Required; it is kept in the book of changes, so that others know why.</small>
        </label>
        <p class="ac-bad" role="alert" v-if="refusal">{{ refusal }}</p>
        <div class="ac-buttons">
          <button type="button" class="ac-button" @click="close" :disabled="busy">Cancel</button>
          <button type="submit" class="ac-button ac-main-deed" :disabled="busy || (deed.needs_reason && !reason)">{{ busy ? "…" : deed.deed }}</button>
        </div>
      </form>
    </dialog>`,
  data() {
    return { deed: null, typed: {}, errors: {}, reason: "", force: false, refusal: "", busy: false, waiting: null, id: `deed-${Math.random().toString(36).slice(2)}` };
  },
  methods: {
    async ask(deed) {
      Object.assign(this, { deed, typed: begun(deed.fields), errors: {}, reason: "", force: false, refusal: "", busy: false });
      await this.$nextTick();
      this.$refs.dialog.showModal();
    },
    submit() {
      Object.assign(this, { busy: true, refusal: "", errors: {} });
      this.waiting = setTimeout(() => this.refuse(NO_ANSWER), PATIENCE);
      const { key, about, fields } = this.deed;
      this.$emit("deed", { key, about, reason: this.reason, force: this.force, typed: sent(fields, this.typed) });
    },
    refuse(detail, errors = []) {
      clearTimeout(this.waiting);
      this.busy = false;
      const found = placed(this.deed?.fields ?? [], errors);
      this.errors = found.at;
      this.refusal = found.whole ? detail : "";
      this.$nextTick(() => this.$el.querySelector("[aria-invalid]")?.focus());
    },
    close() {
      this.$refs.dialog.close();
    },
    closed() {
      clearTimeout(this.waiting);
      this.deed = null;
      this.busy = false;
    },
  },
};
