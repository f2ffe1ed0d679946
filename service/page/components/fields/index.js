// The fields of a dialog: lines, choices and sites. What is typed lives in `typed`, by the names of the fields;
// what was refused stands at the field it is about.
export const DeedFields = {
  props: { fields: Array, typed: Object, errors: Object, id: String },
  template: `
    <template v-for="(field, place) in fields" :key="field.name">
      <fieldset v-if="field.kind === 'sites'" class="ac-sites" :aria-describedby="errors[field.name] ? id + field.name + '-error' : null">
        <legend>{{ field.label }}</legend>
        <label v-if="field.every" class="ac-check"><input type="radio" :name="id + field.name" :value="true" v-model="typed[field.name].every" /> every site, also those that are yet to come</label>
        <label v-if="field.every" class="ac-check"><input type="radio" :name="id + field.name" :value="false" v-model="typed[field.name].every" /> only these</label>
        <div class="ac-choices">
          <label v-for="site in field.options" :key="site" class="ac-check"><input type="checkbox" :value="site" v-model="typed[field.name].some" @change="typed[field.name].every = false" /> {{ site }}</label>
        </div>
        <label v-if="field.every" class="ac-labelled">Sites that have no machine yet
          <input class="ac-field" v-model="typed[field.name].others" autocomplete="off" placeholder="with commas between them" @input="typed[field.name].every = false" />
        </label>
        <small v-if="errors[field.name]" class="ac-bad-word" :id="id + field.name + '-error'">{{ errors[field.name] }}</small>
      </fieldset>
      <label v-else class="ac-labelled">{{ field.label }}
        <select v-if="field.kind === 'choice'" class="ac-field" :name="field.name" v-model="typed[field.name]" :autofocus="!place" v-bind="told(field)">
          <option v-for="one in field.options" :key="one.value" :value="one.value">{{ one.text }}</option>
        </select>
        <input v-else class="ac-field" :type="field.kind" :name="field.name" v-model.trim="typed[field.name]" :autofocus="!place" autocomplete="off" autocapitalize="none" spellcheck="false" v-bind="{ ...field.more, ...told(field) }" />
        <small v-if="errors[field.name]" class="ac-bad-word" :id="id + field.name + '-error'">{{ errors[field.name] }}</small>
        <small v-if="field.hint" class="quiet">{{ field.hint }}</small>
      </label>
    </template>`,
  methods: {
    told(field) {
      return this.errors[field.name] ? { "aria-invalid": "true", "aria-describedby": `${this.id}${field.name}-error` } : {};
    },
  },
};

// What stands in the fields when they are first shown.
export function begun(fields) {
  return Object.fromEntries(fields.map((field) => [field.name, field.kind === "sites" ? opened(field) : (field.value ?? "")]));
}

function opened({ value, every }) {
  return { every: every && value === null, some: value ?? [], others: "" };
}

// What was typed as it is sent: sites as their names, and every site as null.
export function sent(fields, typed) {
  return Object.fromEntries(fields.map(({ name, kind }) => [name, kind === "sites" ? named(typed[name]) : typed[name]]));
}

function named({ every, some, others }) {
  if (every) return null;
  const added = others.split(/[\s,]+/).filter(Boolean);
  return [...new Set([...some, ...added])];
}

// What was refused, by the fields that it names; the rest is for the dialog as a whole.
export function placed(fields, errors) {
  const names = fields.map((field) => field.name);
  const known = errors.map((one) => [one.pointer.split("/").find((part) => names.includes(part)), one.detail]);
  return { at: Object.fromEntries(known.filter(([name]) => name)), whole: !known.length || known.some(([name]) => !name) };
}
