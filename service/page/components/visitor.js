// Who is signed in, and the way out.
export default {
  template: `
    <details class="ac-visitor">
      <summary :title="role + (sites ? ' of ' + sites.join(', ') : '')">{{ name }}</summary>
      <div class="ac-panel">
        <span class="quiet small">{{ role }} {{ sites ? "of " + sites.join(", ") : "of all sites" }}</span>
        <a href="/password">Change password</a>
        <button class="ac-button" @click="leave">Sign out</button>
      </div>
    </details>`,
  props: { name: String, role: String, sites: Array },
  methods: {
    async leave() {
      await fetch("/v1/session", { method: "DELETE" });
      location.assign("/sign-in");
    },
  },
};
