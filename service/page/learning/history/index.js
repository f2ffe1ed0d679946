// The alarm history file of the enrolment form: how it is written, and what it holds before anything is stored.
import { plantDate, text, utc } from "alarmcast-format";

export const EMPTY_HISTORY = {
  format: "usual", delimiter: "", encoding: "", time: "", date: "", time_format: "", code: "", state: "", raised: "", cleared: "",
  serial_column: "", serial: "", log_zone: "",
};
const COLUMN_FIELDS = ["delimiter", "encoding", "time", "date", "time_format", "code", "state", "raised", "cleared", "serial_column"];
const QUERY_FIELDS = { time_zone: "log_zone", code_map_bytes: "code_map", preset: "format" };
const SHOWN_CODES = 15;

// The field of the form for a query parameter.
export function fieldOf(parameter) {
  const field = QUERY_FIELDS[parameter] ?? parameter;
  return field in EMPTY_HISTORY || field === "code_map" ? field : "history";
}

export function isColumnField(field) {
  return COLUMN_FIELDS.includes(field);
}

// The query of a request that uploads the file.
export function historyQuery(values, file, codeMap) {
  const query = new URLSearchParams({ name: file.name.slice(0, 200) });
  const zone = values.log_zone || values.time_zone;
  if (zone) query.set("time_zone", zone);
  if (values.serial) query.set("serial", values.serial);
  if (codeMap) query.set("code_map_bytes", codeMap.size);
  if (values.format === "usual") return query;
  if (values.format !== "other") query.set("preset", values.format);
  for (const name of COLUMN_FIELDS) if (values[name]) query.set(name, values[name]);
  return query;
}

export function count(number) {
  return number.toLocaleString("en-GB");
}

// As a value of a text that has its own wording for one.
function counted(number) {
  return { count: number === 1 ? 1 : count(number) };
}

const Field = {
  props: { name: String, label: String, hint: String, values: Object, errors: Object, id: String, list: String, placeholder: String },
  template: `
    <label class="ac-labelled">{{ label }}
      <input class="ac-field" :name="name" v-model.trim="values[name]" autocomplete="off" :list="list" :placeholder="placeholder"
        v-bind="errors[name] ? { 'aria-invalid': 'true', 'aria-describedby': id + name } : {}" />
      <small v-if="errors[name]" class="ac-bad-word" :id="id + name">{{ errors[name] }}</small>
      <small v-else-if="hint" class="quiet">{{ hint }}</small>
    </label>`,
};

export const HistoryFields = {
  components: { Field },
  props: { values: Object, errors: Object, id: String, preview: Object },
  emits: ["map"],
  template: `
    <fieldset class="ac-history">
      <legend>{{ text("learning.history.legend") }}</legend>
      <div class="ac-fields">
        <label class="ac-labelled">{{ text("learning.history.format") }}
          <select class="ac-field" name="format" v-model="values.format" v-bind="errors.format ? { 'aria-invalid': 'true', 'aria-describedby': id + 'format' } : {}">
            <option value="usual">{{ text("learning.history.usual") }}</option>
            <option value="wincc">{{ text("learning.history.wincc") }}</option>
            <option value="ignition">{{ text("learning.history.ignition") }}</option>
            <option value="other">{{ text("learning.history.other") }}</option>
          </select>
          <small v-if="errors.format" class="ac-bad-word" :id="id + 'format'">{{ errors.format }}</small>
        </label>
        <field name="log_zone" :label="text('learning.enrol.log_zone')" :hint="text('learning.enrol.log_zone_hint')" :placeholder="values.time_zone || 'UTC'" :list="id + 'zones'" v-bind="shared" />
        <label v-if="serials.length > 1" class="ac-labelled">{{ text("learning.enrol.serial") }}
          <select class="ac-field" name="serial" v-model="values.serial" v-bind="errors.serial ? { 'aria-invalid': 'true', 'aria-describedby': id + 'serial' } : {}">
            <option value="">{{ text("learning.history.choose_serial") }}</option>
            <option v-for="one in serials" :key="one.serial" :value="one.serial">{{ text("learning.history.serial", { serial: one.serial, rows: count(one.rows) }) }}</option>
          </select>
          <small v-if="errors.serial" class="ac-bad-word" :id="id + 'serial'">{{ errors.serial }}</small>
        </label>
        <field v-else name="serial" :label="text('learning.enrol.serial')" :hint="text('learning.enrol.serial_hint')" :placeholder="text('learning.enrol.serial_placeholder')" v-bind="shared" />
        <label class="ac-labelled">{{ text("learning.history.code_map") }}
          <input class="ac-field" type="file" name="code_map" accept=".csv,text/csv" @change="$emit('map', $event.target.files[0] ?? null)" v-bind="errors.code_map ? { 'aria-invalid': 'true', 'aria-describedby': id + 'code_map' } : {}" />
          <small v-if="errors.code_map" class="ac-bad-word" :id="id + 'code_map'">{{ errors.code_map }}</small>
          <small v-else class="quiet">{{ text("learning.history.code_map_hint") }}</small>
        </label>
      </div>
      <details v-if="values.format !== 'usual'" :open="values.format === 'other' || hasColumnError || null">
        <summary>{{ text("learning.history.columns") }}</summary>
        <p class="quiet small">{{ values.format === "other" ? text("learning.history.columns_help") : text("learning.history.preset_help") }}</p>
        <div class="ac-fields">
          <field name="time" :label="text('learning.history.time')" :list="id + 'columns'" v-bind="shared" />
          <field name="code" :label="text('learning.history.code')" :list="id + 'columns'" v-bind="shared" />
          <field name="delimiter" :label="text('learning.history.delimiter')" :hint="text('learning.history.delimiter_hint')" v-bind="shared" />
          <field name="time_format" :label="text('learning.history.time_format')" :placeholder="text('learning.history.time_format_example')" :hint="text('learning.history.time_format_hint')" v-bind="shared" />
          <field name="date" :label="text('learning.history.date')" :list="id + 'columns'" :hint="text('learning.history.date_hint')" v-bind="shared" />
          <field name="encoding" :label="text('learning.history.encoding')" placeholder="utf-8" :hint="text('learning.history.encoding_hint')" v-bind="shared" />
          <field name="state" :label="text('learning.history.state')" :list="id + 'columns'" :hint="text('learning.history.state_hint')" v-bind="shared" />
          <field name="raised" :label="text('learning.history.raised')" :hint="text('learning.history.raised_hint')" v-bind="shared" />
          <field name="cleared" :label="text('learning.history.cleared')" :hint="text('learning.history.cleared_hint')" v-bind="shared" />
          <field name="serial_column" :label="text('learning.history.serial_column')" :list="id + 'columns'" :hint="text('learning.history.serial_column_hint')" v-bind="shared" />
        </div>
      </details>
      <datalist :id="id + 'columns'"><option v-for="column in preview?.columns ?? []" :key="column" :value="column"></option></datalist>
    </fieldset>`,
  computed: {
    shared() {
      return { values: this.values, errors: this.errors, id: this.id };
    },
    serials() {
      return this.preview?.serials ?? [];
    },
    hasColumnError() {
      return Object.keys(this.errors).some(isColumnField);
    },
  },
  methods: { text, count },
};

export const HistoryPreview = {
  props: { preview: Object, file: String },
  template: `
    <section class="ac-preview" role="region" :aria-label="text('learning.preview.title', { file })" tabindex="-1">
      <h3>{{ text("learning.preview.title", { file }) }}</h3>
      <p v-if="preview.problem" class="ac-bad" role="alert">{{ preview.problem }}</p>
      <p v-else role="status">{{ summary }}</p>
      <p v-for="note in preview.notes" :key="note" class="ac-warn">{{ note }}</p>
      <template v-if="preview.first_rows.length">
        <h4>{{ text("learning.preview.first_rows") }}</h4>
        <div class="ac-scroll" tabindex="0" role="group" :aria-label="text('learning.preview.first_rows')"><table class="ac-table">
          <thead><tr>
            <th class="number">{{ text("learning.preview.line") }}</th><th>{{ text("learning.preview.time") }}</th><th>{{ text("learning.preview.alarm") }}</th><th>{{ text("learning.preview.row") }}</th>
          </tr></thead>
          <tbody><tr v-for="row in preview.first_rows" :key="row.line">
            <td class="number">{{ row.line }}</td>
            <td><time v-if="row.at" :datetime="row.at" :title="utc(row.at)">{{ plantDate(row.at, preview.time_zone) }}</time><span v-else class="quiet">{{ row.meaning === "cleared" ? text("learning.preview.cleared") : text("learning.preview.other") }}</span></td>
            <td>{{ row.code }} <span v-if="row.name">{{ row.name }}</span></td>
            <td><code class="ac-raw">{{ row.text }}</code></td>
          </tr></tbody>
        </table></div>
      </template>
      <template v-if="preview.rejected">
        <h4>{{ text("learning.preview.rejected", counted(preview.rejected)) }}</h4>
        <ul class="ac-reasons"><li v-for="row in preview.rejected_rows" :key="row.line">{{ text("learning.preview.rejected_row", { line: row.line, reason: row.reason }) }} <code class="ac-raw">{{ row.text }}</code></li></ul>
      </template>
      <details v-if="preview.codes.length">
        <summary>{{ text("learning.preview.codes", counted(preview.code_count)) }}</summary>
        <div class="ac-scroll" tabindex="0" role="group" :aria-label="text('learning.preview.codes', counted(preview.code_count))"><table class="ac-table">
          <thead><tr><th>{{ text("learning.preview.code") }}</th><th>{{ text("learning.preview.name") }}</th><th class="number">{{ text("learning.preview.rows") }}</th></tr></thead>
          <tbody><tr v-for="one in preview.codes.slice(0, shown)" :key="one.code"><td>{{ one.code }}</td><td>{{ one.name || one.text }}</td><td class="number">{{ count(one.rows) }}</td></tr></tbody>
        </table></div>
      </details>
    </section>`,
  data() {
    return { shown: SHOWN_CODES };
  },
  computed: {
    summary() {
      const { rows, first_at: first, last_at: last, time_zone: zone, code_count: codes } = this.preview;
      return text("learning.preview.summary", { rows: count(rows), first: plantDate(first, zone), last: plantDate(last, zone), codes: count(codes) });
    },
  },
  methods: { text, count, counted, plantDate, utc },
};
