/** One workspace in the list. It is made once; afterwards only what changed is touched. */

import { isBusy, whatNext } from "../describe.js";
import { h, replace, say } from "../dom.js";
import { ago, exactly, size } from "../format.js";
import { actionsKey, actionsOf } from "../components/actions.js";
import { badge, updateBadge } from "../components/badge.js";
import { ProgressView } from "../components/progress.js";
import { link } from "../routes.js";

export class Row {
  constructor(id, store) {
    this.store = store;
    this.name = h("a", { class: "name", href: link(`/workspaces/${id}`) });
    this.description = h("p", { class: "description" });
    this.badge = badge();
    this.next = h("p", { class: "next" });
    this.progress = new ProgressView();
    this.used = h("time", {});
    this.size = h("span", {});
    this.actions = h("div", { class: "actions" });
    this.element = h("li", { class: "row", "data-id": id },
      h("div", { class: "what" }, this.name, this.description),
      h("div", { class: "state" }, this.badge, this.next, this.progress.element),
      h("div", { class: "facts" },
        h("p", {}, h("span", { class: "term" }, "Last used "), this.used),
        h("p", {}, h("span", { class: "term" }, "Archive "), this.size)),
      this.actions);
  }

  update(workspace) {
    this.workspace = workspace;
    say(this.name, workspace.name);
    say(this.description, workspace.description ?? "");
    say(this.size, workspace.archive?.size_bytes == null ? "none" : size(workspace.archive.size_bytes));
    updateBadge(this.badge, workspace);
    this.element.dataset.phase = workspace.phase;
    this.updateActions(workspace);
    this.tick();
  }

  /** What changes with time alone. */
  tick() {
    const { workspace } = this;
    const busy = isBusy(workspace);
    say(this.next, busy ? "" : whatNext(workspace));
    if (busy || !this.progress.element.hidden) this.progress.update(workspace, this.store.progress.get(workspace.id));
    say(this.used, ago(workspace.last_access_at));
    if (workspace.last_access_at && this.used.dateTime !== workspace.last_access_at) {
      this.used.dateTime = workspace.last_access_at;
      this.used.title = exactly(workspace.last_access_at);
    }
  }

  updateActions(workspace) {
    const key = actionsKey(workspace);
    if (this.key === key) return;
    this.key = key;
    const hadFocus = this.actions.contains(document.activeElement);
    replace(this.actions, actionsOf(workspace, this.store));
    // Whoever pressed a key here goes on from here.
    if (hadFocus) (this.actions.firstElementChild ?? this.name).focus();
  }
}
