// A sortable table of plain data that shows the first rows, and all rows on request.
// A cell is a text, a number, or an object with any of text, href, title, at (a moment; `year` shows its year,
// `until` marks it as expired), sort, sign, tone, tag, bar (a share), more and actions. Texts are never markup.
import { plantDate, plantTime, text, utc } from "alarmcast-format";

const sortValue = (cell) => (cell && typeof cell === "object" ? (cell.sort ?? cell.at ?? cell.text ?? null) : cell);

function compare(a, b) {
  if (a === b) return 0;
  if (a === null) return 1; // missing values come last in both orders
  if (b === null) return -1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

export default {
  template: `
    <p v-if="empty && !rows.length" class="ac-empty">{{ empty }}</p>
    <div v-else class="ac-data-table">
      <div class="ac-scroll" tabindex="0" role="region" :aria-label="label">
        <table class="ac-table">
          <thead>
            <tr>
              <th v-for="(column, index) in columns" :key="index" scope="col" :class="{ number: column.number }" :title="column.hint || null" :aria-sort="sorted(index)">
                <button v-if="column.title && sortable" type="button" class="ac-sort" @click="sort(index)">{{ column.title }}<span aria-hidden="true">{{ arrow(index) }}</span></button>
                <span v-else :class="{ 'sr-only': !column.title }">{{ column.title || text("common.table.actions") }}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            <tr v-for="row in visible" :key="row.key" :class="{ 'is-chosen': row.key === chosen }">
              <td v-for="(cell, index) in row.cells.map(toObject)" :key="index" :data-title="index && cell.text !== '' ? columns[index].title : null" :class="{ number: columns[index].number, 'ac-bar-cell': cell.bar !== undefined, 'ac-action-cell': cell.actions }">
                <span v-if="cell.bar !== undefined" class="ac-meter" aria-hidden="true"><i :style="{ width: 100 * cell.bar + '%' }"></i></span>
                <a v-if="cell.href" :href="cell.href" :title="cell.title">{{ cell.text }}</a>
                <time v-else-if="cell.at" :datetime="cell.at" :title="utc(cell.at)">{{ (cell.year ? plantDate : plantTime)(cell.at, cell.zone || zone) }}<span v-if="cell.until && isPast(cell.at)" class="ac-bad-text">{{ text("common.table.expired") }}</span></time>
                <span v-else-if="cell.actions" class="ac-actions"><button v-for="action in cell.actions" :key="action.name" type="button" class="ac-button ac-small" :aria-label="action.label" @click="$emit('action', { name: action.name, key: row.key })">{{ action.text }}</button></span>
                <span v-else-if="cell.tag" :class="['ac-tag', cell.tone]" :title="cell.title"><span aria-hidden="true">{{ cell.sign }}</span>{{ cell.text }}</span>
                <span v-else :title="cell.title"><span v-if="cell.sign" :class="cell.tone" aria-hidden="true">{{ cell.sign }}&nbsp;</span>{{ cell.text }}</span>
                <span v-if="cell.more" class="quiet small ac-more">{{ cell.more }}</span>
              </td>
            </tr>
          </tbody>
        </table>
      </div>
      <button v-if="rows.length > visible.length" type="button" class="ac-button ac-small" @click="all = true">{{ text("common.table.show_all", { count: rows.length }) }}</button>
    </div>`,
  props: {
    columns: Array, rows: Array, label: String, zone: { type: String, default: "UTC" },
    first: { type: Number, default: 20 }, order: { type: Object, default: null }, sortable: { type: Boolean, default: true }, chosen: { default: null }, empty: { type: String, default: "" },
  },
  emits: ["action"],
  data() {
    return { by: this.order, all: false };
  },
  computed: {
    ordered() {
      if (!this.by) return this.rows;
      const { index, descending } = this.by;
      const at = (row) => sortValue(row.cells[index]) ?? null;
      const direction = (a, b) => (descending && at(a) !== null && at(b) !== null ? -1 : 1);
      return [...this.rows].sort((a, b) => direction(a, b) * compare(at(a), at(b)));
    },
    visible() {
      return this.all ? this.ordered : this.ordered.slice(0, this.first);
    },
  },
  methods: {
    plantDate, plantTime, text, utc,
    isPast(at) {
      return new Date(at) < new Date();
    },
    toObject(cell) {
      if (cell === null || cell === undefined) return { text: "–" };
      return typeof cell === "object" ? { ...cell, text: cell.text ?? "–" } : { text: typeof cell === "number" ? cell.toLocaleString("en-GB") : cell };
    },
    sort(index) {
      const descending = this.by?.index === index ? !this.by.descending : Boolean(this.columns[index].number);
      this.by = { index, descending };
    },
    sorted(index) {
      if (this.by?.index !== index) return null;
      return this.by.descending ? "descending" : "ascending";
    },
    arrow(index) {
      return { descending: " ▾", ascending: " ▴" }[this.sorted(index)] ?? "";
    },
  },
};
