/** One workspace: its state, its history and its settings. */

import { ApiError, get, messageOf } from "../api.js";
import { every } from "../clock.js";
import { actionButtons, actionsKey } from "../components/actions.js";
import { ProgressBar, badge, updateBadge } from "../components/indicators.js";
import { recoveryPanel } from "../components/recovery.js";
import { reportErrors } from "../components/toast.js";
import { failureOf, hasChoice, isBusy, whatNext } from "../describe.js";
import { h, icon, mainElement, replaceChildren, setText, setVisible } from "../dom.js";
import { ago } from "../format.js";
import { ICONS } from "../icons.js";
import { notice, start } from "../page.js";
import { idInPath, link } from "../routes.js";
import { Archives } from "./archives.js";
import { Conditions } from "./conditions.js";
import { History } from "./history.js";
import { Logs } from "./logs.js";
import { Network } from "./network.js";
import { Notes } from "./notes.js";
import { Ports } from "./ports.js";
import { Settings } from "./settings.js";
import { Usage } from "./usage.js";

/** @import { Store } from "../store.js" */
/** @import { Person, Workspace } from "../types.js" */

const USAGE_MS = 60000, PORTS_MS = 5000, POLL_MS = 3000;

class WorkspacePage {
  /**
   * @param {HTMLElement} main
   * @param {Store} store
   * @param {Person} user
   * @param {string} id
   */
  constructor(main, store, user, id) {
    this.store = store;
    this.user = user;
    this.id = id;
    /** @type {Workspace | undefined} */
    this.workspace = undefined;
    this.actionsKey = "";
    this.problemKey = "";
    this.name = h("h1");
    this.description = h("p", { class: "quiet" });
    this.badge = badge();
    this.next = h("p", { class: "next" });
    this.progress = new ProgressBar();
    this.actions = h("div", { class: "actions" });
    this.problem = h("section", { class: "card warn", "aria-label": "What happened", hidden: true });
    this.conditions = new Conditions();
    this.usage = new Usage(id);
    this.history = new History(id);
    this.logs = new Logs(id);
    this.notes = new Notes(id, store);
    this.archives = new Archives(id);
    this.ports = new Ports(id);
    this.network = new Network(id);
    this.settings = new Settings(id, store);
    main.append(
      h("p", { class: "crumb" }, h("a", { href: link("/") }, "Workspaces")),
      h("div", { class: "head" }, h("div", {}, this.name, this.description), this.actions),
      h("div", { class: "state" }, this.badge, this.next, this.progress.element),
      this.problem,
      h("div", { class: "columns" },
        h("div", {}, this.history.element, this.notes.element, this.logs.element),
        h("div", {},
          this.ports.element, this.conditions.element, this.usage.element, this.archives.element,
          this.network.element, this.settings.element)));
    store.subscribe((changed) => this.handleChanges(changed));
    every(1000, () => this.tick());
    every(USAGE_MS, () => reportErrors(() => Promise.all([this.usage.load(), this.network.load()])));
    every(PORTS_MS, () => this.workspace?.phase === "RUNNING" && this.ports.refresh());
    every(POLL_MS, () => this.poll());
  }

  get isMine() {
    return this.workspace?.owner.id === this.user.id;
  }

  async load() {
    this.update(await get(`/workspaces/${this.id}`));
    await Promise.all([this.loadHistory(), this.usage.load(), this.network.load(), this.logs.read()]);
  }

  async loadHistory() {
    await Promise.all([this.history.load(), this.archives.load()]);
  }

  /** @param {Set<string>} changed */
  handleChanges(changed) {
    if (!changed.has(this.id)) return;
    const workspace = this.store.get(this.id);
    if (workspace) this.handleUpdate(workspace);
    else if (this.isMine) this.showDeleted();
  }

  /** Live events cover only your own workspaces, so an administrator polls those of others. */
  async poll() {
    if (!this.workspace || this.isMine) return;
    try {
      this.handleUpdate(await get(`/workspaces/${this.id}`));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.showDeleted();
    }
  }

  /** @param {Workspace} workspace */
  handleUpdate(workspace) {
    const changed = workspace.version !== this.workspace?.version;
    const started = workspace.phase === "RUNNING" && this.workspace?.phase !== "RUNNING";
    this.update(workspace);
    if (changed) reportErrors(() => this.loadHistory());
    if (started) this.logs.read();
  }

  /** @param {Workspace} workspace */
  update(workspace) {
    this.workspace = workspace;
    document.title = `${workspace.name} · CodeHub`;
    setText(this.name, workspace.name);
    setText(this.description, workspace.description ?? "");
    updateBadge(this.badge, workspace);
    this.updateActions(workspace);
    this.updateProblem(workspace);
    for (const part of [this.conditions, this.notes, this.settings]) part.update(workspace);
    this.ports.update(workspace, this.isMine);
    this.tick();
  }

  tick() {
    const { workspace } = this;
    if (!workspace) return;
    const used = workspace.last_access_at ? `Last used ${ago(workspace.last_access_at)}.` : "Never used.";
    setText(this.next, isBusy(workspace) ? "" : `${whatNext(workspace)} ${used}`);
    this.progress.update(workspace, this.store.progress.get(this.id));
  }

  /** @param {Workspace} workspace */
  updateActions(workspace) {
    const key = actionsKey(workspace);
    if (this.actionsKey === key) return;
    this.actionsKey = key;
    const hadFocus = this.actions.contains(document.activeElement);
    const onDeleted = () => location.assign(link("/"));
    const buttons = actionButtons(workspace, this.store, { recoversHere: true, onDeleted });
    replaceChildren(this.actions, buttons);
    if (hadFocus) (buttons[0] ?? mainElement()).focus();
  }

  /** @param {Workspace} workspace */
  updateProblem(workspace) {
    const { error, archive, out_of_reach: lost, recover } = workspace;
    const shown = hasChoice(workspace);
    const key = shown ? JSON.stringify([error, archive, lost, recover]) : "";
    if (this.problemKey === key) return;
    this.problemKey = key;
    setVisible(this.problem, shown);
    const heading = h("h2", {}, icon(ICONS.warning), failureOf(workspace));
    replaceChildren(this.problem, shown ? [heading, recoveryPanel(workspace, this.store)] : []);
  }

  showDeleted() {
    const text = "You can undelete it for some days: open “Recently deleted” below the list of workspaces.";
    replaceChildren(mainElement(), notice("This workspace was deleted", text));
  }
}

start(async ({ main, store, user }) => {
  const page = new WorkspacePage(main, store, user, idInPath());
  try {
    await page.load();
  } catch (error) {
    const missing = error instanceof ApiError && error.status === 404;
    const title = missing ? "There is no such workspace" : "The workspace cannot be shown";
    replaceChildren(main, notice(title, messageOf(error)));
  }
});
