// The signed-in user, a link to change the password, and sign out.
import { text } from "alarmcast-format";

export default {
  template: `
    <details class="ac-user">
      <summary :title="scope">{{ name }}</summary>
      <div class="ac-panel">
        <span class="quiet small">{{ scope }}</span>
        <a href="/password">{{ text("common.user.change_password") }}</a>
        <button class="ac-button" @click="signOut">{{ text("common.user.sign_out") }}</button>
      </div>
    </details>`,
  props: { name: String, role: String, sites: Array },
  computed: {
    scope() {
      return text("common.user.scope", { role: text(`common.role.${this.role}`), sites: this.sites?.join(", ") ?? text("common.user.all_sites") });
    },
  },
  methods: {
    text,
    async signOut() {
      await fetch("/v1/session", { method: "DELETE" });
      location.assign("/sign-in");
    },
  },
};
