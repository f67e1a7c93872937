/** Deletions that can still be taken back. */

import { get, post } from "../api.js";
import { now } from "../clock.js";
import { h, icon, replace, say, toggle } from "../dom.js";
import { ago, ahead } from "../format.js";
import { ICONS } from "../icons.js";
import { orTell, toast } from "../components/toast.js";

export class Deleted {
  constructor(store) {
    this.store = store;
    this.list = h("ul", { class: "plain-list" });
    this.title = h("summary", {});
    this.element = h("details", { class: "fold deleted", hidden: true }, this.title, this.list);
  }

  async load() {
    const { items } = await get("/workspaces?deleted=true&limit=100");
    const back = items.filter(({ undelete_until: until }) => until && Date.parse(until) > now());
    toggle(this.element, back.length > 0);
    say(this.title, `Recently deleted (${back.length})`);
    replace(this.list, back.map((each) => this.item(each)));
  }

  item(workspace) {
    const button = h("button", { type: "button", class: "button second", "aria-label": `Take back ${workspace.name}`,
      onclick: () => orTell(() => this.takeBack(workspace)) }, icon(ICONS.restore), "Take back");
    return h("li", {}, h("div", {}, h("strong", {}, workspace.name),
      h("p", { class: "quiet" }, `Deleted ${ago(workspace.deleted_at)}; for good ${ahead(workspace.undelete_until)}.`)), button);
  }

  async takeBack(workspace) {
    this.store.put(await post(`/workspaces/${workspace.id}/undelete`));
    toast(`${workspace.name} comes back from its last archive.`);
    await this.load();
  }
}
