/** Workspaces with an error that waits for somebody, the oldest first. */

import { get, post } from "../api.js";
import { h, replace } from "../dom.js";
import { ago } from "../format.js";
import { openRecovery } from "../components/recovery.js";
import { orTell, toast } from "../components/toast.js";
import { link } from "../routes.js";
import { failureOf } from "../describe.js";
import { sectionWith } from "../components/section.js";

export class Errors {
  constructor() {
    this.list = h("ul", { class: "plain-list" });
    this.all = h("button", { type: "button", class: "button second small", hidden: true, onclick: () => orTell(() => this.retryAll()) }, "Try all again");
    this.element = sectionWith("Needs somebody", this.all, this.list);
  }

  async load() {
    const { items } = await get("/admin/errors?limit=100");
    this.all.hidden = items.length < 2;
    replace(this.list, items.length ? items.map((each) => this.item(each)) : h("li", { class: "quiet" }, "No workspace has a problem."));
  }

  item(workspace) {
    // What is answered goes nowhere else: the list is read again.
    const heard = { put: () => orTell(() => this.load()) };
    const button = h("button", { type: "button", class: "button second", "aria-label": `Recover ${workspace.name}`, onclick: () => openRecovery(workspace, heard) }, "Recover");
    return h("li", {}, h("div", {}, h("a", { href: link(`/workspaces/${workspace.id}`) }, workspace.name),
      h("p", { class: "quiet" }, `${failureOf(workspace)}, ${ago(workspace.phase_changed_at)}. Owned by ${workspace.owner.username}.`)),
    button);
  }

  async retryAll() {
    const { recovered, refused } = await post("/admin/errors/recover", { choice: "retry" });
    toast(`${recovered.length} tried again${refused.length ? `, ${refused.length} not: ${refused[0].message}` : "."}`);
    await this.load();
  }
}
