// The enrolment form: values stay in the browser, the history file is uploaded directly to the API, and every error
// is shown at its field.
import { text } from "alarmcast-format";
import { EMPTY_HISTORY, HistoryFields, HistoryPreview, count, fieldOf, historyQuery } from "alarmcast-history";
import { JobSteps, isOpen } from "alarmcast-steps";

const LARGEST_CATALOGUE = 500000; // bytes; a larger one goes to POST /v1/catalogue
const FIELDS = ["site", "machine", "name", "time_zone", "catalogue"];
const EMPTY = { site: "", machine: "", name: "", time_zone: "", ...EMPTY_HISTORY };

export default {
  components: { HistoryFields, HistoryPreview, JobSteps },
  props: { zones: Array, site: String, machine: String },
  template: `
    <form class="ac-enrol" @submit.prevent="submit" novalidate :aria-label="text('learning.enrol.title')">
      <div class="ac-fields">
        <label class="ac-labelled">{{ text("learning.enrol.site") }}
          <input class="ac-field" name="site" v-model.trim="values.site" required autocomplete="off" placeholder="padova" v-bind="attributes('site')" />
          <small v-if="errors.site" class="ac-bad-word" :id="id + 'site'">{{ errors.site }}</small>
          <small v-else class="quiet">{{ text("learning.enrol.id_rule") }}</small>
        </label>
        <label class="ac-labelled">{{ text("learning.enrol.machine") }}
          <input class="ac-field" name="machine" v-model.trim="values.machine" required autocomplete="off" placeholder="filler-1" v-bind="attributes('machine')" />
          <small v-if="errors.machine" class="ac-bad-word" :id="id + 'machine'">{{ errors.machine }}</small>
          <small v-else class="quiet">{{ text("learning.enrol.machine_hint") }}</small>
        </label>
        <label class="ac-labelled">{{ text("learning.enrol.name") }}
          <input class="ac-field" name="name" v-model.trim="values.name" autocomplete="off" :placeholder="text('learning.enrol.name_hint')" v-bind="attributes('name')" />
          <small v-if="errors.name" class="ac-bad-word" :id="id + 'name'">{{ errors.name }}</small>
        </label>
        <label class="ac-labelled">{{ text("learning.enrol.time_zone") }}
          <input class="ac-field" name="time_zone" v-model.trim="values.time_zone" :list="id + 'zones'" autocomplete="off" placeholder="Europe/Rome" v-bind="attributes('time_zone')" />
          <small v-if="errors.time_zone" class="ac-bad-word" :id="id + 'time_zone'">{{ errors.time_zone }}</small>
        </label>
        <label class="ac-labelled">{{ text("learning.enrol.history") }}
          <input class="ac-field" type="file" name="history" ref="history" accept=".csv,.gz,.csv.gz,text/csv,application/gzip" @change="pick" v-bind="attributes('history')" />
          <small v-if="errors.history" class="ac-bad-word" :id="id + 'history'">{{ errors.history }}</small>
          <small v-else class="quiet">{{ text("learning.enrol.history_hint") }}</small>
        </label>
        <label class="ac-labelled">{{ text("learning.enrol.catalogue") }}
          <input class="ac-field" type="file" name="catalogue" ref="catalogue" accept=".csv,text/csv" v-bind="attributes('catalogue')" />
          <small v-if="errors.catalogue" class="ac-bad-word" :id="id + 'catalogue'">{{ errors.catalogue }}</small>
          <small v-else class="quiet">{{ text("learning.enrol.catalogue_hint") }}</small>
        </label>
      </div>
      <datalist :id="id + 'zones'"><option v-for="zone in zones" :key="zone" :value="zone"></option></datalist>
      <history-fields v-if="file" :values="values" :errors="errors" :id="id" :preview="preview" @map="codeMap = $event" />
      <history-preview v-if="file && preview && !enrolled" ref="preview" :preview="preview" :file="file.name" />
      <p class="quiet" v-if="file && !busy && !enrolled">{{ isConfirmed ? text("learning.enrol.preview_next") : text("learning.enrol.preview_first") }}</p>
      <div class="ac-buttons">
        <button type="submit" class="ac-button ac-primary" :disabled="busy">{{ submitText }}</button>
        <button type="button" class="ac-button" v-if="transfer && sending" @click="transfer.abort()">{{ text("learning.enrol.stop") }}</button>
        <button type="button" class="ac-button" v-if="enrolled && !busy" @click="reset">{{ text("learning.enrol.another") }}</button>
      </div>
      <div v-if="previewing"><label>{{ sending ? sentText : text("learning.enrol.previewing") }} <progress v-bind="sending ? { value: sent, max: size || 1 } : {}"></progress></label></div>
      <p class="ac-bad" role="alert" v-if="error">{{ error }}</p>
      <section v-if="enrolled" class="ac-enrol-result" aria-live="polite">
        <h3>{{ enrolled.key }} <span class="ac-good" v-if="active">{{ text("learning.enrol.active") }}</span></h3>
        <p>{{ text("learning.enrol.done") }}</p>
        <div v-if="credentials" class="ac-warn" role="group" :aria-label="text('learning.enrol.credentials')">
          <p>{{ text("learning.enrol.credentials_help") }}</p>
          <div class="ac-actions">
            <button type="button" class="ac-button ac-primary" :disabled="busy" @click="download">{{ text("learning.enrol.download") }}</button>
            <span class="quiet" role="status" v-if="busy">{{ text("learning.enrol.download_later") }}</span>
            <span class="quiet" role="status" v-else-if="downloaded">{{ text("learning.enrol.downloaded", { file: downloaded }) }}</span>
          </div>
        </div>
        <p v-else-if="credentialsNote" class="ac-warn">{{ credentialsNote }}</p>
        <div v-if="sending && !previewing"><label>{{ sentText }} <progress :value="sent" :max="size || 1"></progress></label></div>
        <div v-if="importing"><label>{{ importText }} <progress v-bind="importing.lines ? { value: importing.lines_done, max: importing.lines } : {}"></progress></label></div>
        <template v-if="imported">
          <p>{{ imported.stored || imported.duplicates ? "✓ " : "" }}{{ importedText }}</p>
          <ul class="ac-reasons" v-if="imported.examples.length"><li v-for="line in imported.examples" :key="line">{{ line }}</li></ul>
          <p v-for="note in imported.notes" :key="note" class="ac-warn">{{ note }}</p>
          <template v-if="imported.edge_toml_source && !credentials">
            <p>{{ text("learning.enrol.source") }}</p>
            <pre class="ac-lines" tabindex="0">{{ imported.edge_toml_source }}</pre>
          </template>
        </template>
        <job-steps v-if="job" :job="job" />
      </section>
    </form>`,
  data() {
    return {
      values: { ...EMPTY }, file: null, codeMap: null, preview: null, previewed: "", previewing: false, errors: {}, error: "", busy: false, enrolled: null, job: null, imported: null,
      credentials: null, credentialsKey: "", credentialsNote: "", downloaded: "", sending: false, sent: 0, size: 0, importing: null, transfer: null, id: `enrol-${Math.random().toString(36).slice(2)}-`,
    };
  },
  computed: {
    // What the preview was made of; a preview of anything else does not count.
    request() {
      return this.file ? JSON.stringify([`${historyQuery(this.values, this.file, this.codeMap)}`, this.file.size, this.file.lastModified, this.codeMap?.name, this.codeMap?.lastModified]) : "";
    },
    isConfirmed() {
      return this.preview !== null && !this.preview.problem && this.previewed === this.request;
    },
    submitText() {
      if (this.busy) return this.previewing ? text("learning.enrol.previewing") : text("learning.enrol.busy");
      if (!this.file) return text("learning.enrol.submit");
      return this.isConfirmed ? text("learning.enrol.submit_history") : text("learning.enrol.submit_preview");
    },
    active() {
      return this.job?.state === "promoted";
    },
    sentText() {
      return text("learning.enrol.sending", { file: this.file?.name, sent: megabytes(this.sent), size: megabytes(this.size) });
    },
    importText() {
      const { lines, lines_done: done } = this.importing;
      return lines ? text("learning.enrol.storing", { done: count(done), lines: count(lines) }) : text("learning.enrol.checking");
    },
    importedText() {
      const { rows, stored, duplicates, quarantined, time_zone: zone } = this.imported;
      const parts = [text("learning.enrol.rows", { rows: count(rows), stored: count(stored) })];
      if (duplicates) parts.push(text("learning.enrol.duplicates", { count: count(duplicates) }));
      parts.push(quarantined ? text("learning.enrol.quarantined", { count: count(quarantined) }) : text("learning.enrol.none_rejected"));
      return text("learning.enrol.imported", { parts: parts.join(", "), zone }) + (quarantined ? text("learning.enrol.first_invalid") : "");
    },
  },
  mounted() {
    this.values.time_zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
    this.fill({ site: this.site, machine: this.machine });
  },
  methods: {
    text,
    attributes(field) {
      return this.errors[field] ? { "aria-invalid": "true", "aria-describedby": this.id + field } : {};
    },
    fill({ site, machine }) {
      if (!site || this.busy) return;
      this.reset();
      Object.assign(this.values, { site, machine: machine ?? "" });
    },
    reset() {
      const zone = this.values.time_zone;
      Object.assign(this, { values: { ...EMPTY, time_zone: zone }, file: null, codeMap: null, preview: null, errors: {}, error: "", enrolled: null, job: null, imported: null });
      this.setCredentials(null, null);
      for (const input of [this.$refs.history, this.$refs.catalogue]) if (input) input.value = "";
    },
    pick(event) {
      Object.assign(this, { file: event.target.files[0] ?? null, codeMap: null, preview: null });
      Object.assign(this.values, EMPTY_HISTORY);
    },
    async submit() {
      if (this.busy) return;
      if (this.file && !this.isConfirmed) {
        this.sendPreview();
        return;
      }
      const { site, machine, name, time_zone } = this.values;
      // Credentials are issued once: sending another file for the same machine must not discard them.
      if (this.credentialsKey !== `${site}/${machine}`) this.setCredentials(null, null);
      Object.assign(this, { errors: {}, error: "", enrolled: null, job: null, imported: null, importing: null });
      const chosen = this.$refs.catalogue.files[0];
      if (chosen && chosen.size > LARGEST_CATALOGUE) {
        this.errors = { catalogue: text("learning.enrol.catalogue_too_large") };
        return;
      }
      this.busy = true;
      this.$emit("enrol", { site, machine, name: name || null, time_zone: time_zone || null, catalogue: chosen ? await chosen.text() : null });
    },
    // Called by the server after an error.
    refuse({ detail, errors }) {
      this.busy = false;
      const known = errors.map((one) => [one.pointer.split("/").find((part) => FIELDS.includes(part)), one.detail]).filter(([field]) => field);
      this.errors = Object.fromEntries(known);
      this.error = known.length && known.length === errors.length ? "" : detail;
      this.$nextTick(() => this.$el.querySelector("[aria-invalid]")?.focus());
    },
    // Called by the server after the enrolment; the history file follows.
    accept(enrolment) {
      const { site, machine } = enrolment.machine;
      this.enrolled = { site, machine, key: `${site}/${machine}` };
      this.job = enrolment.job;
      if (!this.credentials || enrolment.credentials) this.setCredentials(enrolment.credentials, enrolment.credentials_note, this.enrolled.key);
      if (this.file) this.send();
      else this.busy = false;
    },
    // Credentials are kept here until the form is used again, and nowhere else.
    setCredentials(credentials, note, key = "") {
      Object.assign(this, { credentials, credentialsKey: key, credentialsNote: note ?? "", downloaded: "" });
    },
    download() {
      const link = document.createElement("a");
      const source = this.imported?.edge_toml_source;
      const toml = source ? this.credentials.edge_toml.replace(/^timezone = .*\n/m, () => source) : this.credentials.edge_toml;
      link.href = URL.createObjectURL(new Blob([toml], { type: "application/toml" }));
      link.download = this.downloaded = `${this.enrolled.site}-${this.enrolled.machine}.edge.toml`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000); // the browser may ask where to save it
    },
    watch(jobs) {
      const found = this.job && jobs.find((one) => one.id === this.job.id);
      if (found && isOpen(this.job)) this.job = found;
    },
    showImport(progress) {
      if (this.busy && this.enrolled && !this.sending) this.importing = progress;
    },
    // Sends the file to be read only: nothing is stored. Both names are needed for the rights of the user.
    sendPreview() {
      const { site, machine } = this.values;
      Object.assign(this, { errors: {}, error: "", enrolled: null, busy: true, previewing: true, previewed: this.request });
      const done = (error) => Object.assign(this, { sending: false, busy: false, previewing: false, transfer: null, error });
      this.upload(`${site || "-"}/${machine || "-"}`, "/preview", {
        received: (answer) => {
          done("");
          this.showPreview(answer);
        },
        refused: (errors) => {
          this.errors = errors;
          done(text("learning.enrol.preview_refused"));
          this.$nextTick(() => this.$el.querySelector("[aria-invalid]")?.focus());
        },
        failed: () => done(text("learning.enrol.preview_failed")),
      });
    },
    showPreview(preview) {
      const { problem, field, suggested_preset: suggested } = preview;
      if (problem && suggested && this.values.format === "usual") {
        this.values.format = suggested;
        this.sendPreview();
        return;
      }
      this.preview = preview;
      this.errors = problem && field ? { [fieldOf(field)]: problem } : {};
      this.$nextTick(() => (this.$el.querySelector("[aria-invalid]") ?? this.$refs.preview.$el).focus());
    },
    send() {
      this.upload(this.enrolled.key, "", {
        sent: () => {
          this.importing = { lines: null, lines_done: 0 };
          this.$emit("importing", { key: this.enrolled.key });
        },
        received: (answer) => {
          this.imported = answer;
          this.endImport("");
        },
        refused: (errors) => {
          this.errors = errors;
          this.preview = null;
          this.endImport(text("learning.enrol.import_failed"));
        },
        failed: (isStopped) => this.endImport(isStopped ? text("learning.enrol.upload_stopped") : text("learning.enrol.upload_failed")),
      });
    },
    // Sends the file, after the code map, directly to the API.
    upload(key, path, { sent = () => {}, received, refused, failed }) {
      const query = historyQuery(this.values, this.file, this.codeMap);
      const transfer = new XMLHttpRequest();
      Object.assign(this, { sending: true, sent: 0, size: this.file.size, transfer });
      transfer.upload.onprogress = (event) => (this.sent = event.loaded);
      transfer.upload.onload = () => {
        this.sending = false;
        sent();
      };
      transfer.onload = () => {
        let answer = {};
        try {
          answer = JSON.parse(transfer.responseText);
        } catch {
          answer = { detail: text("learning.enrol.http_error", { status: transfer.status }) };
        }
        if (transfer.status === 200) {
          received(answer);
          return;
        }
        const named = (answer.errors ?? []).map((one) => [fieldName(one.pointer), one.detail]);
        refused(named.length ? Object.fromEntries(named) : { history: answer.detail });
      };
      transfer.onerror = () => failed(false);
      transfer.onabort = () => failed(true);
      const where = key.split("/").map(encodeURIComponent).join("/");
      transfer.open("POST", `/v1/machines/${where}/history${path}?${query}`);
      transfer.setRequestHeader("Content-Type", "text/csv");
      transfer.send(this.codeMap ? new Blob([this.codeMap, this.file]) : this.file);
    },
    endImport(error) {
      Object.assign(this, { sending: false, importing: null, busy: false, transfer: null, error });
      this.$emit("imported");
    },
  },
};

function megabytes(bytes) {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function fieldName(pointer) {
  const [where, name] = pointer.split("/");
  return where === "path" && FIELDS.includes(name) ? name : fieldOf(name);
}
