// Shows a secret once: it is kept here until the dialog is closed, and nowhere else.
import { text } from "alarmcast-format";

export default {
  template: `
    <dialog ref="dialog" class="ac-confirm ac-secret" :aria-labelledby="id" @close="shown = null">
      <template v-if="shown">
        <h2 :id="id">{{ shown.title }}</h2>
        <p v-for="line in shown.lines" :key="line">{{ line }}</p>
        <pre ref="secret" tabindex="0" :aria-label="text('access.secret.label')">{{ shown.secret }}</pre>
        <p class="quiet small" role="status">{{ status }}</p>
        <div class="ac-buttons">
          <button type="button" class="ac-button" @click="$refs.dialog.close()">{{ text("access.secret.close") }}</button>
          <button type="button" class="ac-button" :class="{ 'ac-primary': !shown.file }" @click="copy" autofocus>{{ text("access.secret.copy") }}</button>
          <button v-if="shown.file" type="button" class="ac-button ac-primary" @click="download">{{ text("access.secret.download", shown) }}</button>
        </div>
      </template>
    </dialog>`,
  data() {
    return { shown: null, status: "", id: `secret-${Math.random().toString(36).slice(2)}` };
  },
  methods: {
    text,
    async show(shown) {
      Object.assign(this, { shown, status: text("access.secret.once") });
      await this.$nextTick();
      this.$refs.dialog.showModal();
    },
    async copy() {
      try {
        await navigator.clipboard.writeText(this.shown.secret);
      } catch {
        // Without HTTPS a browser has no clipboard for a page; execCommand still works.
        getSelection().selectAllChildren(this.$refs.secret);
        document.execCommand("copy");
      }
      this.status = text("access.secret.copied");
    },
    // The file is made here: the service does not have the secret any more.
    download() {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([this.shown.secret], { type: "application/toml" }));
      link.download = this.shown.file;
      link.click();
      this.status = text("access.secret.downloaded", this.shown);
      setTimeout(() => URL.revokeObjectURL(link.href), 60000); // the browser may ask where to save it
    },
  },
};
