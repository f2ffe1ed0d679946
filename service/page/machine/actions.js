// What a person may do about a likely alarm: say that it is known, or put it on the shelf for a while, with a reason.
import { plantTime, utc, zoneName } from "alarmcast-format";

const PATIENCE = 15000; // milliseconds
const NO_ANSWER = "Nothing has answered for 15 seconds. It may have been done all the same: look at the page again, then try again.";

const SHELVED = "No notification of it is sent until then. It is still forecast and learned from; it is left out of the alarm figures until then.";
const ACKNOWLEDGED = "No further notification of it is sent until its probability has dropped below the threshold. It is still forecast, learned from and in the alarm figures.";

export default {
  template: `
    <div v-if="alarm" class="ac-deeds">
      <p v-if="shelf" class="ac-warn">‖ Shelved until <time :datetime="shelf.until" :title="utc(shelf.until)">{{ plantTime(shelf.until, zone) }}</time> by {{ shelf.actor }}: {{ shelf.reason }}</p>
      <p v-else-if="known" class="quiet small">✓ {{ known.actor }} knows of it since <time :datetime="known.at" :title="utc(known.at)">{{ plantTime(known.at, zone) }}</time><template v-if="known.note">: {{ known.note }}</template></p>
      <div class="ac-tools">
        <button v-if="!known" type="button" class="ac-button" @click="open('acknowledge')">Acknowledge</button>
        <button v-if="!shelf" type="button" class="ac-button" @click="open('shelve')">Shelve …</button>
        <button v-else type="button" class="ac-button" @click="$emit('unshelve', shelf.id)">Unshelve</button>
        <span class="quiet small">Both stop notifications of it; a shelved alarm is also left out of the alarm figures. Forecasts and learning go on as before.</span>
      </div>
      <dialog ref="dialog" class="ac-dialog" aria-labelledby="ac-deed" @close="stop" @cancel="busy && $event.preventDefault()">
        <form @submit.prevent="send">
          <h2 id="ac-deed">{{ deed === "shelve" ? "Shelve" : "Acknowledge" }} {{ alarm.code }} {{ alarm.text }}</h2>
          <p class="quiet small">{{ deed === "shelve" ? SHELVED : ACKNOWLEDGED }}</p>
          <fieldset v-if="deed === 'shelve'">
            <legend>For how long</legend>
            <label v-for="one in spans" :key="one.value"><input type="radio" name="span" :value="one.value" v-model="span" /> {{ one.word }}</label>
            <label><input type="radio" name="span" value="until" v-model="span" /> until, in plant time ({{ zoneName(Date.now(), zone) }}) <input class="ac-field" type="datetime-local" v-model="until" :required="span === 'until'" aria-label="until, in plant time" @focus="span = 'until'" /></label>
          </fieldset>
          <label>{{ deed === "shelve" ? "Why" : "What is done about it (may stay empty)" }} <input class="ac-field" type="text" maxlength="1000" v-model.trim="reason" :required="deed === 'shelve'" /></label>
          <p v-if="refusal" class="ac-bad" role="alert">{{ refusal }}</p>
          <div class="ac-tools">
            <button type="submit" class="ac-button ac-main-deed" :disabled="busy">{{ busy ? "…" : deed === "shelve" ? "Shelve it" : "Acknowledge it" }}</button>
            <button type="button" class="ac-button" :disabled="busy" @click="$refs.dialog.close()">Leave it</button>
          </div>
        </form>
      </dialog>
    </div>`,
  data() {
    return {
      alarm: null, shelf: null, known: null, zone: "UTC", deed: "acknowledge", span: 60, until: "", reason: "",
      refusal: "", busy: false, waiting: null,
      SHELVED, ACKNOWLEDGED, spans: [{ value: 60, word: "1 hour" }, { value: 480, word: "8 hours" }],
    };
  },
  mounted() {
    this.$emit("ready");
  },
  methods: {
    plantTime, utc, zoneName,
    // While the dialog is open it stays about the alarm it was opened for.
    load(told) {
      if (!this.$refs.dialog?.open) Object.assign(this, told);
    },
    open(deed) {
      this.deed = deed;
      this.refusal = "";
      this.$refs.dialog.showModal();
    },
    send() {
      const words = { code: this.alarm.code, reason: this.reason || null };
      const end = this.span === "until" ? { until: this.until } : { minutes: this.span };
      this.refusal = "";
      this.busy = true;
      this.waiting = setTimeout(() => this.refuse(NO_ANSWER), PATIENCE);
      this.$emit(this.deed, this.deed === "shelve" ? { ...words, ...end } : words);
    },
    // What was typed stays until it was taken.
    done() {
      this.reason = "";
      this.$refs.dialog?.close();
      this.stop();
    },
    refuse(detail) {
      this.stop();
      this.refusal = detail;
    },
    stop() {
      clearTimeout(this.waiting);
      this.busy = false;
    },
  },
};
