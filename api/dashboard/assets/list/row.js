/** One workspace in the list. Updates touch only what has changed. */

import { actionButtons, actionsKey } from "../components/actions.js";
import { ProgressBar, badge, updateBadge } from "../components/indicators.js";
import { isBusy, whatNext } from "../describe.js";
import { h, replaceChildren, setText } from "../dom.js";
import { ago, exactTime, size } from "../format.js";
import { link } from "../routes.js";

/** @import { Store } from "../store.js" */
/** @import { Workspace } from "../types.js" */

export class Row {
  /**
   * @param {Workspace} workspace
   * @param {Store} store
   */
  constructor(workspace, store) {
    this.workspace = workspace;
    this.store = store;
    this.key = "";
    this.name = h("a", { class: "name", href: link(`/workspaces/${workspace.id}`) });
    this.description = h("p", { class: "description" });
    this.badge = badge();
    this.next = h("p", { class: "next" });
    this.progress = new ProgressBar();
    this.used = h("time");
    this.size = h("span");
    this.actions = h("div", { class: "actions" });
    this.element = h("li", { class: "row", "data-id": workspace.id },
      h("div", { class: "what" }, this.name, this.description),
      h("div", { class: "state" }, this.badge, this.next, this.progress.element),
      h("div", { class: "facts" },
        h("p", {}, h("span", { class: "term" }, "Last used "), this.used),
        h("p", {}, h("span", { class: "term" }, "Archive "), this.size)),
      this.actions);
    this.update(workspace);
  }

  /** @param {Workspace} workspace */
  update(workspace) {
    this.workspace = workspace;
    const bytes = workspace.archive?.size_bytes ?? null;
    setText(this.name, workspace.name);
    setText(this.description, workspace.description ?? "");
    setText(this.size, bytes === null ? "none" : size(bytes));
    updateBadge(this.badge, workspace);
    this.element.dataset.phase = workspace.phase;
    this.updateActions(workspace);
    this.tick();
  }

  /** Update what changes with time alone. */
  tick() {
    const { workspace } = this;
    const { last_access_at: used } = workspace;
    const busy = isBusy(workspace);
    setText(this.next, busy ? "" : whatNext(workspace));
    if (busy || !this.progress.element.hidden) {
      this.progress.update(workspace, this.store.progress.get(workspace.id));
    }
    setText(this.used, ago(used));
    if (used && this.used.dateTime !== used) {
      this.used.dateTime = used;
      this.used.title = exactTime(used);
    }
  }

  focus() {
    this.element.scrollIntoView({ block: "nearest" });
    this.name.focus();
  }

  /** @param {Workspace} workspace */
  updateActions(workspace) {
    const key = actionsKey(workspace);
    if (this.key === key) return;
    this.key = key;
    const hadFocus = this.actions.contains(document.activeElement);
    const buttons = actionButtons(workspace, this.store);
    replaceChildren(this.actions, buttons);
    // Keyboard users continue where they were.
    if (hadFocus) (buttons[0] ?? this.name).focus();
  }
}
