/** Failed workspaces, the oldest first. */

import { get, post } from "../api.js";
import { openRecoveryDialog } from "../components/recovery.js";
import { sectionWith } from "../components/section.js";
import { reportErrors, toast } from "../components/toast.js";
import { failureOf } from "../describe.js";
import { button, h, replaceChildren } from "../dom.js";
import { ago } from "../format.js";
import { link } from "../routes.js";

/** @import { BulkRecovered, Workspace, WorkspacePage } from "../types.js" */

export class Errors {
  constructor() {
    this.list = h("ul", { class: "plain-list" });
    this.retryAll = button({ class: "button second small", hidden: true,
      onclick: () => reportErrors(() => this.recoverAll()) }, "Try all again");
    this.element = sectionWith("Failed workspaces", this.retryAll, this.list);
  }

  async load() {
    /** @type {WorkspacePage} */
    const { items } = await get("/admin/errors?limit=100");
    this.retryAll.hidden = items.length < 2;
    const none = h("li", { class: "quiet" }, "No workspace has failed.");
    replaceChildren(this.list, items.length ? items.map((each) => this.item(each)) : none);
  }

  /** @param {Workspace} workspace */
  item(workspace) {
    // This page has no store: it loads the list again instead.
    const sink = { put: () => { reportErrors(() => this.load()); } };
    const { id, name, owner, phase_changed_at: since } = workspace;
    const control = button({ class: "button second", "aria-label": `Recover ${name}`,
      onclick: () => openRecoveryDialog(workspace, sink) }, "Recover");
    const text = `${failureOf(workspace)}, ${ago(since)}. Owned by ${owner.username}.`;
    return h("li", {}, h("div", {},
      h("a", { href: link(`/workspaces/${id}`) }, name), h("p", { class: "quiet" }, text)), control);
  }

  async recoverAll() {
    /** @type {BulkRecovered} */
    const { recovered, refused } = await post("/admin/errors/recover", { choice: "retry" });
    const rest = refused.length ? ` CodeHub refused ${refused.length}: ${refused[0].message}` : "";
    toast(`Trying ${recovered.length} again.${rest}`);
    await this.load();
  }
}
