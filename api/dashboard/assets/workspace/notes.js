/** The memo: notes in Markdown, shown as text that was formatted. */

import { patch } from "../api.js";
import { h, replace } from "../dom.js";
import { field, formOf } from "../components/forms.js";
import { renderMarkdown } from "./markdown.js";
import { sectionWith } from "../components/section.js";

export class Memo {
  constructor(id, store) {
    Object.assign(this, { id, store });
    this.body = h("div", {});
    this.edit = h("button", { type: "button", class: "button second small", onclick: () => this.open() }, "Edit");
    this.element = sectionWith("Memo", this.edit, this.body);
  }

  update({ memo }) {
    if (this.memo === memo || this.editing) return;
    this.memo = memo;
    replace(this.body, memo ? renderMarkdown(memo) : h("p", { class: "quiet" }, "Nothing noted yet."));
  }

  open() {
    const text = h("textarea", { name: "memo", rows: 12, maxlength: 65536, value: this.memo ?? "" });
    const cancel = h("button", { type: "button", class: "button second", onclick: () => this.close() }, "Cancel");
    const form = formOf({ button: "Save", cancel, submit: async ({ memo }) => {
      this.store.put(await patch(`/workspaces/${this.id}`, { memo: memo || null }));
      this.close(memo || null);
    } }, field("Notes", text, { hint: "Markdown: headings, lists, code, links." }));
    this.editing = true;
    this.edit.hidden = true;
    replace(this.body, form);
    text.focus();
  }

  close(memo = this.memo) {
    [this.editing, this.memo] = [false, undefined];
    this.edit.hidden = false;
    this.update({ memo });
    this.edit.focus();
  }
}
