// Shows a secret this once: it lives here until the dialog is closed, and nowhere else.
export default {
  template: `
    <dialog ref="dialog" class="ac-confirm ac-once" :aria-labelledby="id" @close="told = null">
      <template v-if="told">
        <h2 :id="id">{{ told.title }}</h2>
        <p v-for="line in told.lines" :key="line">{{ line }}</p>
        <pre ref="secret" tabindex="0" aria-label="Shown this once">{{ told.secret }}</pre>
        <p class="quiet small" role="status">{{ done }}</p>
        <div class="ac-buttons">
          <button type="button" class="ac-button" @click="$refs.dialog.close()">Close for good</button>
          <button type="button" class="ac-button" :class="{ 'ac-primary': !told.file }" @click="copy" autofocus>Copy</button>
          <button v-if="told.file" type="button" class="ac-button ac-primary" @click="keep">Download {{ told.file }}</button>
        </div>
      </template>
    </dialog>`,
  data() {
    return { told: null, done: "", id: `once-${Math.random().toString(36).slice(2)}` };
  },
  methods: {
    async show(told) {
      Object.assign(this, { told, done: "It is kept nowhere: copy it now, because it cannot be shown again." });
      await this.$nextTick();
      this.$refs.dialog.showModal();
    },
    async copy() {
      try {
        await navigator.clipboard.writeText(this.told.secret);
      } catch {
        // Where a page is not served over HTTPS, browsers have no clipboard for it; the old way still works.
        getSelection().selectAllChildren(this.$refs.secret);
        document.execCommand("copy");
      }
      this.done = "Copied. Paste it where it belongs before you copy something else.";
    },
    // Made of what is shown here: the service is not asked again, and could not answer.
    keep() {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([this.told.secret], { type: "application/toml" }));
      link.download = this.told.file;
      link.click();
      this.done = `Downloaded as ${this.told.file}. Take it to the machine, then delete it here.`;
      setTimeout(() => URL.revokeObjectURL(link.href), 60000); // a browser that asks where to keep it takes its time
    },
  },
};
