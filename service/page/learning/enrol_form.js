// A machine from the form to live: what is typed stays here, the history file goes from the disk straight to the
// API, and every refusal stands at the field it is about, in the API's own words.
import { JobSteps, isOpen } from "alarmcast-steps";

const LARGEST_CATALOGUE = 500000; // bytes; a larger one goes to POST /v1/catalogue
const FIELDS = ["site", "machine", "name", "time_zone", "catalogue"];
const OF_THE_FILE = { "query/time_zone": "log_zone", "query/serial": "serial" };
const EMPTY = { site: "", machine: "", name: "", time_zone: "", serial: "", log_zone: "" };

export default {
  components: { JobSteps },
  props: { zones: Array, site: String, machine: String },
  template: `
    <form class="ac-enrol" @submit.prevent="submit" novalidate aria-label="Enrol a machine">
      <div class="ac-fields">
        <label class="ac-labelled">Site
          <input class="ac-field" name="site" v-model.trim="wish.site" required autocomplete="off" placeholder="padova" v-bind="told('site')" />
          <small v-if="errors.site" class="ac-bad-text" :id="id + 'site'">{{ errors.site }}</small>
          <small class="quiet">lower-case letters, digits, - and _</small>
        </label>
        <label class="ac-labelled">Machine
          <input class="ac-field" name="machine" v-model.trim="wish.machine" required autocomplete="off" placeholder="filler-1" v-bind="told('machine')" />
          <small v-if="errors.machine" class="ac-bad-text" :id="id + 'machine'">{{ errors.machine }}</small>
          <small class="quiet">as its agent is called</small>
        </label>
        <label class="ac-labelled">Name
          <input class="ac-field" name="name" v-model.trim="wish.name" autocomplete="off" placeholder="what people call it" v-bind="told('name')" />
          <small v-if="errors.name" class="ac-bad-text" :id="id + 'name'">{{ errors.name }}</small>
        </label>
        <label class="ac-labelled">Plant's time zone
          <input class="ac-field" name="time_zone" v-model.trim="wish.time_zone" :list="id + 'zones'" autocomplete="off" placeholder="Europe/Rome" v-bind="told('time_zone')" />
          <small v-if="errors.time_zone" class="ac-bad-text" :id="id + 'time_zone'">{{ errors.time_zone }}</small>
        </label>
        <label class="ac-labelled">Its past, if there is a log
          <input class="ac-field" type="file" name="history" ref="history" accept=".csv,.gz,.csv.gz,text/csv,application/gzip" @change="pick" v-bind="told('history')" />
          <small v-if="errors.history" class="ac-bad-text" :id="id + 'history'">{{ errors.history }}</small>
          <small v-else class="quiet">timestamp,alarm,serial as .csv or .csv.gz</small>
        </label>
        <label class="ac-labelled">What its codes mean, if they are new
          <input class="ac-field" type="file" name="catalogue" ref="catalogue" accept=".csv,text/csv" v-bind="told('catalogue')" />
          <small v-if="errors.catalogue" class="ac-bad-text" :id="id + 'catalogue'">{{ errors.catalogue }}</small>
          <small v-else class="quiet">code,text,severity,target as .csv</small>
        </label>
        <template v-if="file">
          <label class="ac-labelled">Only rows of serial
            <input class="ac-field" name="serial" v-model.trim="wish.serial" autocomplete="off" placeholder="all rows" v-bind="told('serial')" />
            <small v-if="errors.serial" class="ac-bad-text" :id="id + 'serial'">{{ errors.serial }}</small>
            <small class="quiet" v-else>needed if the log has rows of several machines</small>
          </label>
          <label class="ac-labelled">Time zone of the log
            <input class="ac-field" name="log_zone" v-model.trim="wish.log_zone" :list="id + 'zones'" autocomplete="off" :placeholder="wish.time_zone || 'UTC'" v-bind="told('log_zone')" />
            <small class="quiet" v-if="!errors.log_zone">for timestamps that name none; the plant's unless given</small>
            <small v-else class="ac-bad-text" :id="id + 'log_zone'">{{ errors.log_zone }}</small>
          </label>
        </template>
      </div>
      <datalist :id="id + 'zones'"><option v-for="zone in zones" :key="zone" :value="zone"></option></datalist>
      <div class="ac-buttons">
        <button type="submit" class="ac-button ac-primary" :disabled="busy">{{ busy ? "Enrolling …" : file ? "Enrol and load its past" : "Enrol" }}</button>
        <button type="button" class="ac-button" v-if="transfer && sending" @click="transfer.abort()">Stop the upload</button>
        <button type="button" class="ac-button" v-if="enrolled && !busy" @click="again">Enrol another</button>
      </div>
      <p class="ac-bad" role="alert" v-if="refusal">{{ refusal }}</p>
      <section v-if="enrolled" class="ac-way" aria-live="polite">
        <h3>{{ enrolled.key }} <span class="ac-good" v-if="live">is live</span></h3>
        <p>✓ Enrolled: its alarms are taken from now on. Point its agent at the broker, if it is not there yet.</p>
        <div v-if="access" class="ac-warn" role="group" aria-label="Credentials">
          <p>The broker lets it in with credentials of its own, which are shown now and never again. The file is the
            agent's whole configuration; put it beside the machine, where only the agent reads it.</p>
          <div class="ac-actions">
            <button type="button" class="ac-button ac-primary" :disabled="busy" @click="keepAccess">Download edge.toml</button>
            <span class="quiet" role="status" v-if="busy">Ready once its past is loaded.</span>
            <span class="quiet" role="status" v-else-if="kept">Downloaded as {{ kept }}.</span>
          </div>
        </div>
        <p v-else-if="accessNote" class="ac-warn">{{ accessNote }}</p>
        <div v-if="sending"><label>{{ sentWords }} <progress :value="sent" :max="size || 1"></progress></label></div>
        <div v-if="storing"><label>{{ storedWords }} <progress v-bind="storing.lines ? { value: storing.lines_done, max: storing.lines } : {}"></progress></label></div>
        <template v-if="loaded">
          <p>{{ loaded.stored || loaded.duplicates ? "✓ " : "" }}{{ loadedWords }}</p>
          <ul class="ac-reasons" v-if="loaded.examples.length"><li v-for="line in loaded.examples" :key="line">{{ line }}</li></ul>
          <p v-for="note in loaded.notes" :key="note" class="ac-warn">{{ note }}</p>
          <template v-if="loaded.edge_toml_source && !access">
            <p>If its agent follows the same log, its edge.toml needs in [source]:</p>
            <pre class="ac-lines" tabindex="0">{{ loaded.edge_toml_source }}</pre>
          </template>
        </template>
        <job-steps v-if="job" :job="job" />
      </section>
    </form>`,
  data() {
    return {
      wish: { ...EMPTY }, file: null, errors: {}, refusal: "", busy: false, enrolled: null, job: null, loaded: null,
      access: null, accessKey: "", accessNote: "", kept: "", sending: false, sent: 0, size: 0, storing: null, transfer: null, id: `enrol-${Math.random().toString(36).slice(2)}-`,
    };
  },
  computed: {
    live() {
      return this.job?.state === "promoted";
    },
    sentWords() {
      return `Sending ${this.file?.name}: ${megabytes(this.sent)} of ${megabytes(this.size)}`;
    },
    storedWords() {
      const { lines, lines_done: done } = this.storing;
      return lines ? `Storing: ${count(done)} of ${count(lines)} lines` : "Looking the file through before a row is stored";
    },
    loadedWords() {
      const { rows, stored, duplicates, quarantined, time_zone: zone } = this.loaded;
      const parts = [`${count(rows)} rows: ${count(stored)} stored`];
      if (duplicates) parts.push(`${count(duplicates)} there already`);
      parts.push(quarantined ? `${count(quarantined)} that are no alarms in quarantine` : "none refused");
      return `${parts.join(", ")}. Timestamps that name no zone were read in ${zone}.${quarantined ? " The first rows that are no alarms:" : ""}`;
    },
  },
  mounted() {
    this.wish.time_zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
    this.fill({ site: this.site, machine: this.machine });
  },
  methods: {
    told(field) {
      return this.errors[field] ? { "aria-invalid": "true", "aria-describedby": this.id + field } : {};
    },
    fill({ site, machine }) {
      if (!site || this.busy) return;
      this.again();
      Object.assign(this.wish, { site, machine: machine ?? "" });
    },
    again() {
      const zone = this.wish.time_zone;
      Object.assign(this, { wish: { ...EMPTY, time_zone: zone }, file: null, errors: {}, refusal: "", enrolled: null, job: null, loaded: null });
      this.show(null, null);
      for (const input of [this.$refs.history, this.$refs.catalogue]) if (input) input.value = "";
    },
    pick(event) {
      this.file = event.target.files[0] ?? null;
    },
    async submit() {
      if (this.busy) return;
      const { site, machine, name, time_zone } = this.wish;
      // Credentials are shown once: whoever only sends another file for the same machine must not lose them.
      if (this.accessKey !== `${site}/${machine}`) this.show(null, null);
      Object.assign(this, { errors: {}, refusal: "", enrolled: null, job: null, loaded: null, storing: null });
      const chosen = this.$refs.catalogue.files[0];
      if (chosen && chosen.size > LARGEST_CATALOGUE) {
        this.errors = { catalogue: "It is too large for this form; load it with alarmcast admin catalogue load FILE." };
        return;
      }
      this.busy = true;
      this.$emit("enrol", { site, machine, name: name || null, time_zone: time_zone || null, catalogue: chosen ? await chosen.text() : null });
    },
    // From the server: refused; the fields that the API names say so themselves.
    complain({ detail, errors }) {
      this.busy = false;
      const known = errors.map((one) => [one.pointer.split("/").find((part) => FIELDS.includes(part)), one.detail]).filter(([field]) => field);
      this.errors = Object.fromEntries(known);
      this.refusal = known.length && known.length === errors.length ? "" : detail;
      this.$nextTick(() => this.$el.querySelector("[aria-invalid]")?.focus());
    },
    // From the server: taken in; the past follows.
    accept(enrolment) {
      const { site, machine } = enrolment.machine;
      this.enrolled = { site, machine, key: `${site}/${machine}` };
      this.job = enrolment.job;
      if (!this.access || enrolment.credentials) this.show(enrolment.credentials, enrolment.credentials_note, this.enrolled.key);
      if (this.file) this.send();
      else this.busy = false;
    },
    // Credentials live here until the form is used again, and nowhere else.
    show(credentials, note, key = "") {
      Object.assign(this, { access: credentials, accessKey: key, accessNote: note ?? "", kept: "" });
    },
    keepAccess() {
      const link = document.createElement("a");
      const source = this.loaded?.edge_toml_source;
      const text = source ? this.access.edge_toml.replace(/^timezone = .*\n/m, () => source) : this.access.edge_toml;
      link.href = URL.createObjectURL(new Blob([text], { type: "application/toml" }));
      link.download = this.kept = `${this.enrolled.site}-${this.enrolled.machine}.edge.toml`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000); // a browser that asks where to keep it takes its time
    },
    watch(jobs) {
      const found = this.job && jobs.find((one) => one.id === this.job.id);
      if (found && isOpen(this.job)) this.job = found;
    },
    store(underway) {
      if (this.busy && this.enrolled && !this.sending) this.storing = underway;
    },
    send() {
      const { site, machine, key } = this.enrolled;
      const asked = new URLSearchParams({ name: this.file.name.slice(0, 200) });
      if (this.wish.log_zone) asked.set("time_zone", this.wish.log_zone);
      if (this.wish.serial) asked.set("serial", this.wish.serial);
      Object.assign(this, { sending: true, sent: 0, size: this.file.size, transfer: new XMLHttpRequest() });
      this.transfer.upload.onprogress = (told) => (this.sent = told.loaded);
      this.transfer.upload.onload = () => {
        this.sending = false;
        this.storing = { lines: null, lines_done: 0 };
        this.$emit("storing", { key });
      };
      this.transfer.onload = () => this.answered();
      this.transfer.onerror = () => this.ended("The upload broke off. The machine is enrolled; load its past again.");
      this.transfer.onabort = () => this.ended("The upload was stopped. The machine is enrolled; its past can be loaded at any time.");
      this.transfer.open("POST", `/v1/machines/${encodeURIComponent(site)}/${encodeURIComponent(machine)}/history?${asked}`);
      this.transfer.setRequestHeader("Content-Type", "text/csv");
      this.transfer.send(this.file);
    },
    answered() {
      let answer = {};
      try {
        answer = JSON.parse(this.transfer.responseText);
      } catch {
        answer = { detail: `The service answered ${this.transfer.status}.` };
      }
      if (this.transfer.status === 200) {
        this.loaded = answer;
        this.ended("");
      } else {
        const named = (answer.errors ?? []).map((one) => [OF_THE_FILE[one.pointer] ?? "history", one.detail]);
        this.errors = named.length ? Object.fromEntries(named) : { history: answer.detail };
        this.ended("The machine is enrolled, but its past was not loaded. Correct what is marked and send it again.");
      }
    },
    ended(refusal) {
      Object.assign(this, { sending: false, storing: null, busy: false, transfer: null, refusal });
      this.$emit("stored");
    },
  },
};

function megabytes(bytes) {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function count(number) {
  return number.toLocaleString("en-GB");
}
