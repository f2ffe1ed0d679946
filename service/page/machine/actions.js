// Acknowledge, shelve or unshelve the selected alarm.
import { plantTime, text, utc, zoneName } from "alarmcast-format";

const TIMEOUT = 15; // seconds
const HOURS = [1, 8];

export default {
  template: `
    <div v-if="alarm" class="ac-alarm-actions">
      <p v-if="shelf" class="ac-warn" :title="utc(shelf.until)">‖ {{ text("machine.actions.shelved", { time: plantTime(shelf.until, zone), actor: shelf.actor, reason: shelf.reason }) }}</p>
      <p v-else-if="acknowledgement" class="quiet small" :title="utc(acknowledgement.at)">✓ {{ acknowledged }}</p>
      <div class="ac-tools">
        <button v-if="!acknowledgement" type="button" class="ac-button" @click="open('acknowledge')">{{ text("machine.actions.acknowledge") }}</button>
        <button v-if="!shelf" type="button" class="ac-button" @click="open('shelve')">{{ text("machine.actions.shelve.open") }}</button>
        <button v-else type="button" class="ac-button" @click="$emit('unshelve', shelf.id)">{{ text("machine.actions.unshelve") }}</button>
        <span class="quiet small">{{ text("machine.actions.note") }}</span>
      </div>
      <dialog ref="dialog" class="ac-dialog" aria-labelledby="ac-action-title" @close="stop" @cancel="busy && $event.preventDefault()">
        <form @submit.prevent="send">
          <h2 id="ac-action-title">{{ text("machine.actions." + action + ".title", { alarm: alarm.code + " " + alarm.text }) }}</h2>
          <p class="quiet small">{{ text("machine.actions." + action + ".effect") }}</p>
          <fieldset v-if="action === 'shelve'">
            <legend>{{ text("machine.actions.duration") }}</legend>
            <label v-for="count in hours" :key="count"><input type="radio" name="duration" :value="count" v-model="duration" /> {{ text("machine.actions.duration.hours", { count }) }}</label>
            <label><input type="radio" name="duration" value="until" v-model="duration" /> {{ text("machine.actions.duration.until", { zone: zoneName(Date.now(), zone) }) }} <input class="ac-field" type="datetime-local" v-model="until" :required="duration === 'until'" :aria-label="text('machine.actions.duration.until.label')" @focus="duration = 'until'" /></label>
          </fieldset>
          <label>{{ action === "shelve" ? text("common.reason") : text("machine.actions.comment") }} <input class="ac-field" type="text" maxlength="1000" v-model.trim="reason" :required="action === 'shelve'" /></label>
          <p v-if="error" class="ac-bad" role="alert">{{ error }}</p>
          <div class="ac-tools">
            <button type="submit" class="ac-button ac-primary" :disabled="busy">{{ busy ? "…" : text("machine.actions." + action) }}</button>
            <button type="button" class="ac-button" :disabled="busy" @click="$refs.dialog.close()">{{ text("common.cancel") }}</button>
          </div>
        </form>
      </dialog>
    </div>`,
  data() {
    return {
      alarm: null, shelf: null, acknowledgement: null, zone: "UTC", action: "acknowledge", hours: HOURS, duration: HOURS[0], until: "", reason: "",
      error: "", busy: false, timer: null,
    };
  },
  computed: {
    acknowledged() {
      const { actor, at, note } = this.acknowledgement;
      const values = { actor, time: plantTime(at, this.zone), note };
      return note ? text("machine.actions.acknowledged.note", values) : text("machine.actions.acknowledged", values);
    },
  },
  methods: {
    plantTime, text, utc, zoneName,
    // An open dialog keeps its alarm.
    load(data) {
      if (!this.$refs.dialog?.open) Object.assign(this, data);
    },
    open(action) {
      this.action = action;
      this.error = "";
      this.$refs.dialog.showModal();
    },
    send() {
      const values = { code: this.alarm.code, reason: this.reason || null };
      const end = this.duration === "until" ? { until: this.until } : { minutes: 60 * this.duration };
      this.error = "";
      this.busy = true;
      this.timer = setTimeout(() => this.refuse(text("common.no_response", { seconds: TIMEOUT })), TIMEOUT * 1000);
      this.$emit(this.action, this.action === "shelve" ? { ...values, ...end } : values);
    },
    done() {
      this.reason = "";
      this.$refs.dialog?.close();
      this.stop();
    },
    refuse(detail) {
      this.stop();
      this.error = detail;
    },
    stop() {
      clearTimeout(this.timer);
      this.busy = false;
    },
  },
};
