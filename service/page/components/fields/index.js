// The fields of a dialog: one-line inputs, choices, text files and sites. `values` holds what is typed, by field name.
import { text } from "alarmcast-format";

const MAX_FILE_BYTES = 200000;

export const DialogFields = {
  props: { fields: Array, values: Object, errors: Object, id: String },
  template: `
    <template v-for="(field, index) in fields" :key="field.name">
      <fieldset v-if="field.kind === 'sites'" class="ac-sites" :aria-describedby="errors[field.name] ? id + field.name + '-error' : null">
        <legend>{{ field.label }}</legend>
        <label v-if="field.every" class="ac-check"><input type="radio" :name="id + field.name" :value="true" v-model="values[field.name].every" /> {{ text("common.sites.all") }}</label>
        <label v-if="field.every" class="ac-check"><input type="radio" :name="id + field.name" :value="false" v-model="values[field.name].every" /> {{ text("common.sites.some") }}</label>
        <div class="ac-choices">
          <label v-for="site in field.options" :key="site" class="ac-check"><input type="checkbox" :value="site" v-model="values[field.name].some" @change="values[field.name].every = false" /> {{ site }}</label>
        </div>
        <label v-if="field.every" class="ac-labelled">{{ text("common.sites.others") }}
          <input class="ac-field" v-model="values[field.name].others" autocomplete="off" :placeholder="text('common.sites.others.hint')" @input="values[field.name].every = false" />
        </label>
        <small v-if="errors[field.name]" class="ac-bad-text" :id="id + field.name + '-error'">{{ errors[field.name] }}</small>
      </fieldset>
      <label v-else class="ac-labelled">{{ field.label }}
        <select v-if="field.kind === 'choice'" class="ac-field" :name="field.name" v-model="values[field.name]" :autofocus="!index" v-bind="errorAttributes(field)">
          <option v-for="option in field.options" :key="option.value" :value="option.value">{{ option.text }}</option>
        </select>
        <input v-else-if="field.kind === 'file'" class="ac-field" type="file" :name="field.name" @change="read(field, $event)" v-bind="{ ...field.more, ...errorAttributes(field) }" />
        <input v-else class="ac-field" :type="field.kind" :name="field.name" v-model.trim="values[field.name]" :autofocus="!index" autocomplete="off" autocapitalize="none" spellcheck="false" v-bind="{ ...field.more, ...errorAttributes(field) }" />
        <small v-if="errors[field.name]" class="ac-bad-text" :id="id + field.name + '-error'">{{ errors[field.name] }}</small>
        <small v-if="field.hint" class="quiet">{{ field.hint }}</small>
      </label>
    </template>`,
  methods: {
    text,
    async read(field, event) {
      const file = event.target.files[0];
      const tooLarge = file && file.size > MAX_FILE_BYTES;
      event.target.setCustomValidity(tooLarge ? text("common.file_too_large", { kilobytes: MAX_FILE_BYTES / 1000 }) : "");
      this.values[field.name] = file && !tooLarge ? await file.text() : "";
    },
    errorAttributes(field) {
      return this.errors[field.name] ? { "aria-invalid": "true", "aria-describedby": `${this.id}${field.name}-error` } : {};
    },
  },
};

export function initialValues(fields) {
  const initial = ({ kind, value, every }) => (kind === "sites" ? { every: every && value === null, some: value ?? [], others: "" } : (value ?? ""));
  return Object.fromEntries(fields.map((field) => [field.name, initial(field)]));
}

// Returns the values as they are sent: sites as a list of names, all sites as null.
export function submittedValues(fields, values) {
  return Object.fromEntries(fields.map(({ name, kind }) => [name, kind === "sites" ? siteNames(values[name]) : values[name]]));
}

function siteNames({ every, some, others }) {
  return every ? null : [...new Set([...some, ...others.split(/[\s,]+/).filter(Boolean)])];
}

// Returns errors by the field that they name, and whether there is an error without a field.
export function errorsByField(fields, errors) {
  const names = fields.map((field) => field.name);
  const located = errors.map((error) => [error.pointer.split("/").find((part) => names.includes(part)), error.detail]);
  return { byField: Object.fromEntries(located.filter(([name]) => name)), general: !located.length || located.some(([name]) => !name) };
}
