// A table of many rows as plain data: it sorts by itself, shows the first rows and the rest when asked for.
// A cell is a text, a number, or an object with any of text, href, title, at (a moment; year
// shows its year, until says whether it is over), sort, sign, tone, tag,
// bar (a share) and deeds; texts are text, never markup.
import { plantDate, plantTime, utc } from "alarmcast-format";

const value = (cell) => (cell && typeof cell === "object" ? (cell.sort ?? cell.at ?? cell.text ?? null) : cell);

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1; // what is not known comes last, whatever the order
  if (b === null || b === undefined) return -1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

export default {
  template: `
    <div class="ac-records">
      <div class="ac-scroll" tabindex="0" role="region" :aria-label="label">
        <table class="ac-table">
          <thead>
            <tr>
              <th v-for="(column, place) in columns" :key="place" scope="col" :class="{ number: column.number }" :title="column.hint || null" :aria-sort="sorted(place)">
                <button v-if="column.title && sortable" type="button" class="ac-sort" @click="sort(place)">{{ column.title }}<span aria-hidden="true">{{ arrow(place) }}</span></button>
                <span v-else :class="{ 'only-read': !column.title }">{{ column.title || "what can be done" }}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            <tr v-for="row in visible" :key="row.key" :class="{ 'is-chosen': row.key === chosen }">
              <td v-for="(cell, place) in row.cells.map(whole)" :key="place" :data-title="place && cell.text !== '' ? columns[place].title : null" :class="{ number: columns[place].number, 'ac-barred': cell.bar !== undefined, 'ac-doing': cell.deeds }">
                <span v-if="cell.bar !== undefined" class="ac-meter" aria-hidden="true"><i :style="{ width: 100 * cell.bar + '%' }"></i></span>
                <a v-if="cell.href" :href="cell.href" :title="cell.title">{{ cell.text }}</a>
                <time v-else-if="cell.at" :datetime="cell.at" :title="utc(cell.at)">{{ (cell.year ? plantDate : plantTime)(cell.at, cell.zone || zone) }}<span v-if="cell.until && isOver(cell.at)" class="ac-bad-word"> over</span></time>
                <span v-else-if="cell.deeds" class="ac-deeds"><button v-for="deed in cell.deeds" :key="deed.name" type="button" class="ac-button ac-small" :aria-label="deed.label" @click="$emit('deed', { name: deed.name, key: row.key })">{{ deed.text }}</button></span>
                <span v-else-if="cell.tag" :class="['ac-tag', cell.tone]" :title="cell.title"><span aria-hidden="true">{{ cell.sign }}</span>{{ cell.text }}</span>
                <span v-else :title="cell.title"><span v-if="cell.sign" :class="cell.tone" aria-hidden="true">{{ cell.sign }}&nbsp;</span>{{ cell.text }}</span>
                <span v-if="cell.more" class="quiet small ac-more">{{ cell.more }}</span>
              </td>
            </tr>
          </tbody>
        </table>
      </div>
      <button v-if="rows.length > visible.length" type="button" class="ac-button ac-small" @click="all = true">Show all {{ rows.length }}</button>
    </div>`,
  props: {
    columns: Array, rows: Array, label: String, zone: { type: String, default: "UTC" },
    first: { type: Number, default: 20 }, order: { type: Object, default: null }, sortable: { type: Boolean, default: true }, chosen: { default: null },
  },
  emits: ["deed"],
  data() {
    return { by: this.order, all: false };
  },
  computed: {
    ordered() {
      if (!this.by) return this.rows;
      const { place, down } = this.by;
      const known = (row) => ![null, undefined].includes(value(row.cells[place]));
      const turned = (a, b) => (down && known(a) && known(b) ? -1 : 1) * compare(value(a.cells[place]), value(b.cells[place]));
      return [...this.rows].sort(turned);
    },
    visible() {
      return this.all ? this.ordered : this.ordered.slice(0, this.first);
    },
  },
  methods: {
    plantDate, plantTime, utc,
    isOver(at) {
      return new Date(at) < new Date();
    },
    whole(cell) {
      if (cell === null || cell === undefined) return { text: "–" };
      return typeof cell === "object" ? { ...cell, text: cell.text ?? "–" } : { text: typeof cell === "number" ? cell.toLocaleString("en-GB") : cell };
    },
    sort(place) {
      const down = this.by?.place === place ? !this.by.down : Boolean(this.columns[place].number);
      this.by = { place, down };
    },
    sorted(place) {
      if (this.by?.place !== place) return null;
      return this.by.down ? "descending" : "ascending";
    },
    arrow(place) {
      if (this.by?.place !== place) return "";
      return this.by.down ? " ▾" : " ▴";
    },
  },
};
