/** Deleted workspaces that can still be undeleted. */

import { get } from "../api.js";
import { now } from "../clock.js";
import { undelete } from "../components/recovery.js";
import { reportErrors, toast } from "../components/toast.js";
import { button, h, icon, replaceChildren, setText, setVisible } from "../dom.js";
import { ago, moment } from "../format.js";
import { ICONS } from "../icons.js";

/** @import { Store } from "../store.js" */
/** @import { Workspace, WorkspacePage } from "../types.js" */

export class Deleted {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.list = h("ul", { class: "plain-list" });
    this.title = h("summary");
    this.element = h("details", { class: "fold deleted", hidden: true }, this.title, this.list);
  }

  async load() {
    /** @type {WorkspacePage} */
    const { items } = await get("/workspaces?deleted=true&limit=100");
    const rows = items.flatMap((each) => this.item(each) ?? []);
    setVisible(this.element, rows.length > 0);
    setText(this.title, `Recently deleted (${rows.length})`);
    replaceChildren(this.list, rows);
  }

  /** @param {Workspace} workspace */
  item(workspace) {
    const { name, deleted_at: deleted, undelete_until: until } = workspace;
    if (!until || Date.parse(until) <= now()) return null;
    const control = button({ class: "button second", "aria-label": `Undelete ${name}`,
      onclick: () => reportErrors(() => this.undelete(workspace)) }, icon(ICONS.restore), "Undelete");
    const text = `Deleted ${ago(deleted)}. You can undelete it until ${moment(until)}.`;
    return h("li", {}, h("div", {}, h("strong", {}, name), h("p", { class: "quiet" }, text)), control);
  }

  /** @param {Workspace} workspace */
  async undelete(workspace) {
    await undelete(workspace, this.store);
    toast(`${workspace.name} is back, in its last archive.`);
    await this.load();
  }
}
