// What to do about the selected alarm, the answer to it, and what others answered last.
import { plantTime, text, utc } from "alarmcast-format";

const PARTS = ["cause", "consequence", "action"];
const ANSWERS = ["handled", "useful", "wrong"];

export default {
  template: `
    <div v-if="code !== null" class="ac-response">
      <h3>{{ text("machine.response", { alarm: code + " " + alarm }) }}</h3>
      <dl v-if="parts.length">
        <template v-for="part in parts" :key="part"><dt>{{ text("machine.response." + part) }}</dt><dd>{{ response[part] }}</dd></template>
      </dl>
      <p v-if="link"><a :href="link" target="_blank" rel="noopener noreferrer">{{ text("machine.response.link") }}</a></p>
      <p v-if="!parts.length && !link" class="quiet small">{{ text("machine.response.none") }}</p>
      <div v-if="may_answer" class="ac-tools" role="group" :aria-label="text('machine.answers.group')">
        <button v-for="answer in choices" :key="answer" type="button" class="ac-button" :aria-pressed="answer === given" @click="send(answer)">{{ text("common.answer." + answer) }}</button>
        <input class="ac-field" type="text" maxlength="500" v-model.trim="note" :placeholder="text('machine.answers.note')" :aria-label="text('machine.answers.note')" />
      </div>
      <p v-if="error" class="ac-bad" role="alert">{{ error }}</p>
      <h3>{{ text("machine.answers") }}</h3>
      <ul v-if="answers.length" class="ac-answers">
        <li v-for="one in answers" :key="one.id"><strong>{{ text("common.answer." + one.answer) }}</strong><span v-if="one.note">: {{ one.note }}</span> <span class="quiet small" :title="utc(one.at)">{{ text("machine.answers.by", { machine: one.site + "/" + one.machine, time: plantTime(one.at, zone), actor: one.actor }) }}</span></li>
      </ul>
      <p v-else class="quiet small">{{ text("machine.answers.none") }}</p>
    </div>`,
  data() {
    return { code: null, alarm: "", response: {}, answers: [], given: null, may_answer: false, zone: "UTC", note: "", error: "", choices: ANSWERS };
  },
  computed: {
    parts() {
      return PARTS.filter((part) => this.response[part]);
    },
    // Whatever the catalogue holds: only these two schemes become a link.
    link() {
      return /^https?:\/\//.test(this.response.link ?? "") ? this.response.link : null;
    },
  },
  methods: {
    plantTime, text, utc,
    load(data) {
      if (data.code !== this.code) Object.assign(this, { note: "", error: "" });
      Object.assign(this, data);
    },
    send(answer) {
      this.error = "";
      this.$emit("answer", { code: this.code, answer, note: this.note || null });
    },
    done() {
      this.note = "";
    },
    refuse(detail) {
      this.error = detail;
    },
  },
};
