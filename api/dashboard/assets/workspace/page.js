/** One workspace: what it does, what was done to it, what may be done with it. */

import { get } from "../api.js";
import { every } from "../clock.js";
import { failureOf, isBusy, whatNext } from "../describe.js";
import { h, icon, replace, say, toggle } from "../dom.js";
import { ago } from "../format.js";
import { start } from "../page.js";
import { ICONS } from "../icons.js";
import { actionsKey, actionsOf } from "../components/actions.js";
import { badge, updateBadge } from "../components/badge.js";
import { ProgressView } from "../components/progress.js";
import { recoveryPanel } from "../components/recovery.js";
import { orTell } from "../components/toast.js";
import { idInPath, link } from "../routes.js";
import { Archives } from "./archives.js";
import { Conditions } from "./conditions.js";
import { Logs } from "./logs.js";
import { Memo } from "./notes.js";
import { Settings } from "./settings.js";
import { Sparkline } from "./usage.js";
import { Timeline } from "./history.js";

const AGAIN_MS = 60000, LOOK_MS = 3000;

class WorkspacePage {
  constructor(main, store, user, id) {
    Object.assign(this, { store, user, id });
    this.name = h("h1", {});
    this.description = h("p", { class: "quiet" });
    this.badge = badge();
    this.next = h("p", { class: "next" });
    this.progress = new ProgressView();
    this.actions = h("div", { class: "actions" });
    this.problem = h("section", { class: "card warn", "aria-label": "What happened", hidden: true });
    this.parts = { conditions: new Conditions(), sparkline: new Sparkline(id), timeline: new Timeline(id), logs: new Logs(id),
      memo: new Memo(id, store), archives: new Archives(id), settings: new Settings(id, store) };
    const element = (name) => this.parts[name].element;
    main.append(
      h("p", { class: "crumb" }, h("a", { href: link("/") }, "Workspaces")),
      h("div", { class: "head" }, h("div", {}, this.name, this.description), this.actions),
      h("div", { class: "state" }, this.badge, this.next, this.progress.element),
      this.problem,
      h("div", { class: "columns" },
        h("div", {}, element("timeline"), element("memo"), element("logs")),
        h("div", {}, element("conditions"), element("sparkline"), element("archives"), element("settings"))));
    store.subscribe((changed) => this.hear(changed));
    every(1000, () => this.workspace && this.tick());
    every(AGAIN_MS, () => orTell(() => this.parts.sparkline.load()));
    every(LOOK_MS, () => this.lookAgain());
  }

  get isMine() {
    return this.workspace?.owner.id === this.user.id;
  }

  async load() {
    this.update(await get(`/workspaces/${this.id}`));
    await Promise.all([this.loadHistory(), this.parts.sparkline.load(), this.parts.logs.read()]);
  }

  async loadHistory() {
    await Promise.all([this.parts.timeline.load(), this.parts.archives.load()]);
  }

  hear(changed) {
    if (!changed.has(this.id)) return;
    const workspace = this.store.get(this.id);
    if (workspace) this.see(workspace);
    else if (this.isMine) this.showGone();
  }

  /** Live events are about one's own: an administrator who looks at somebody else's asks. */
  async lookAgain() {
    if (!this.workspace || this.isMine) return;
    try {
      this.see(await get(`/workspaces/${this.id}`));
    } catch (error) {
      if (error.status === 404) this.showGone();
    }
  }

  see(workspace) {
    const moved = workspace.version !== this.workspace?.version;
    const started = workspace.phase === "RUNNING" && this.workspace?.phase !== "RUNNING";
    this.update(workspace);
    if (moved) orTell(() => this.loadHistory());
    if (started) this.parts.logs.read();
  }

  update(workspace) {
    this.workspace = workspace;
    document.title = `${workspace.name} · CodeHub`;
    say(this.name, workspace.name);
    say(this.description, workspace.description ?? "");
    updateBadge(this.badge, workspace);
    this.updateActions(workspace);
    this.updateProblem(workspace);
    for (const name of ["conditions", "memo", "settings"]) this.parts[name].update(workspace);
    this.tick();
  }

  tick() {
    const busy = isBusy(this.workspace);
    say(this.next, busy ? "" : `${whatNext(this.workspace)} Last used ${ago(this.workspace.last_access_at)}.`);
    this.progress.update(this.workspace, this.store.progress.get(this.id));
  }

  updateActions(workspace) {
    const key = actionsKey(workspace);
    if (this.key === key) return;
    this.key = key;
    const hadFocus = this.actions.contains(document.activeElement);
    replace(this.actions, actionsOf(workspace, this.store, { recoversHere: true, deleted: () => location.assign(link("/")) }));
    if (hadFocus) (this.actions.firstElementChild ?? document.getElementById("main")).focus();
  }

  updateProblem(workspace) {
    const key = workspace.needs_person ? JSON.stringify([workspace.error, workspace.archive, workspace.recover]) : "";
    if (this.problemKey === key) return;
    this.problemKey = key;
    toggle(this.problem, key !== "");
    replace(this.problem, key ? [h("h2", {}, icon(ICONS.warning), failureOf(workspace)), recoveryPanel(workspace, this.store)] : []);
  }

  showGone() {
    replace(document.getElementById("main"), gone("It is deleted", "For a while, the list of workspaces offers to take that back."));
  }
}

function gone(title, words) {
  return h("div", { class: "card lone" }, h("h1", {}, title), h("p", {}, words), h("p", {}, h("a", { class: "button", href: link("/") }, "All workspaces")));
}

start(async ({ main, store, user }) => {
  const page = new WorkspacePage(main, store, user, idInPath());
  try {
    await page.load();
  } catch (error) {
    replace(main, gone(error.status === 404 ? "There is no such workspace" : "It cannot be shown", error.message));
  }
});
