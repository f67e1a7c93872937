/** Notes in Markdown, with an editor. */

import { patch } from "../api.js";
import { createForm, field } from "../components/forms.js";
import { sectionWith } from "../components/section.js";
import { button, h, replaceChildren } from "../dom.js";
import { renderMarkdown } from "./markdown.js";

/** @import { Store } from "../store.js" */
/** @import { Workspace } from "../types.js" */

export class Notes {
  /**
   * @param {string} id
   * @param {Store} store
   */
  constructor(id, store) {
    this.id = id;
    this.store = store;
    /** @type {string | null | undefined} */
    this.memo = undefined;
    this.editing = false;
    this.body = h("div");
    this.edit = button({ class: "button second small", onclick: () => this.open() }, "Edit");
    this.element = sectionWith("Notes", this.edit, this.body);
  }

  /** @param {Pick<Workspace, "memo">} workspace */
  update({ memo }) {
    if (this.memo === memo || this.editing) return;
    this.memo = memo;
    replaceChildren(this.body, memo ? renderMarkdown(memo) : h("p", { class: "quiet" }, "No notes yet."));
  }

  open() {
    const text = h("textarea", { name: "memo", rows: 12, maxlength: 65536, value: this.memo ?? "" });
    const cancel = button({ class: "button second", onclick: () => this.close() }, "Cancel");
    const form = createForm({ button: "Save", cancel, submit: async (values) => {
      const memo = values.memo || null;
      this.store.put(await patch(`/workspaces/${this.id}`, { memo }));
      this.close(memo);
    } }, field("Notes", text, "Markdown: headings, lists, code, links."));
    this.editing = true;
    this.edit.hidden = true;
    replaceChildren(this.body, form);
    text.focus();
  }

  /** @param {string | null} [memo] */
  close(memo = this.memo ?? null) {
    this.editing = false;
    this.memo = undefined;
    this.edit.hidden = false;
    this.update({ memo });
    this.edit.focus();
  }
}
