/** The list of your workspaces. */

import { every } from "../clock.js";
import { openCreateDialog } from "../components/create_dialog.js";
import { reportErrors, toast } from "../components/toast.js";
import { button, h, icon, setText, setVisible } from "../dom.js";
import { ICONS } from "../icons.js";
import { start } from "../page.js";
import { Deleted } from "./deleted.js";
import { countGroups, filterAndSort } from "./filter.js";
import { Row } from "./row.js";
import { Toolbar } from "./toolbar.js";

/** @import { Store } from "../store.js" */
/** @import { Phase, Workspace } from "../types.js" */

class ListPage {
  /**
   * @param {HTMLElement} main
   * @param {Store} store
   */
  constructor(main, store) {
    this.store = store;
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {Map<string, { phase: Phase, failed: boolean }>} */
    this.known = new Map();
    const create = () => openCreateDialog(store, ({ id }) => this.show(id));
    this.summary = h("p", { class: "quiet", id: "summary" });
    this.toolbar = new Toolbar(() => this.draw());
    this.list = h("ul", { class: "rows", "aria-label": "Workspaces" });
    this.nothing = h("p", { class: "lone quiet", hidden: true },
      "No workspace matches. Change the search or show all.");
    this.welcome = welcome(create);
    this.deleted = new Deleted(store);
    this.head = h("div", { class: "head" }, h("div", {}, h("h1", {}, "Workspaces"), this.summary),
      button({ class: "button", id: "create", onclick: create }, icon(ICONS.plus), "New workspace"));
    main.append(this.head, this.toolbar.element, this.list, this.nothing, this.welcome, this.deleted.element);
    store.subscribe((changed) => this.update(changed));
    every(1000, () => this.tick());
    reportErrors(() => this.deleted.load());
  }

  /** @param {Set<string>} changed */
  update(changed) {
    let someGone = false;
    for (const id of changed) {
      const workspace = this.store.get(id);
      if (workspace) {
        this.announce(workspace);
        this.rows.get(id)?.update(workspace);
      } else someGone = this.rows.delete(id) || someGone;
    }
    if (someGone) reportErrors(() => this.deleted.load());
    this.draw();
  }

  /** Show the rows in order. A row that is in its place is not touched. */
  draw() {
    if (!this.store.loaded) return;
    const all = [...this.store.workspaces.values()];
    const shown = filterAndSort(all, this.toolbar.choice);
    let place = this.list.firstElementChild;
    for (const workspace of shown) {
      const { element } = this.row(workspace);
      if (element === place) place = element.nextElementSibling;
      else this.list.insertBefore(element, place);
    }
    while (place) {
      const next = place.nextElementSibling;
      place.remove();
      place = next;
    }
    this.toolbar.showCounts(countGroups(all));
    setVisible(this.welcome, all.length === 0);
    setVisible(this.toolbar.element, all.length > 0);
    setVisible(this.nothing, all.length > 0 && shown.length === 0);
    const running = all.filter(({ phase }) => phase === "RUNNING").length;
    setText(this.summary, all.length ? `${running} of ${all.length} running` : "");
  }

  /** @param {Workspace} workspace */
  row(workspace) {
    const row = this.rows.get(workspace.id) ?? new Row(workspace, this.store);
    this.rows.set(workspace.id, row);
    return row;
  }

  tick() {
    for (const row of this.rows.values()) row.tick();
  }

  /**
   * Tell people who wait that a workspace is ready, or that it has failed.
   * @param {Workspace} workspace
   */
  announce({ id, name, phase, url, needs_person: failed }) {
    const before = this.known.get(id);
    this.known.set(id, { phase, failed });
    if (before && before.phase !== "RUNNING" && phase === "RUNNING") {
      const link = h("a", { href: url, target: "_blank", rel: "noopener" }, "Open");
      toast(`${name} is ready.`, { link });
    }
    if (before && !before.failed && failed) toast(`${name} failed. Recover it here.`, { tone: "warn" });
  }

  /** @param {string} id */
  show(id) {
    this.draw();
    const workspace = this.store.get(id);
    if (workspace) this.row(workspace).focus();
  }
}

/** @param {() => void} create */
function welcome(create) {
  /** @type {(title: string, text: string) => HTMLElement} */
  const point = (title, text) => h("li", {}, h("strong", {}, title), ` ${text}`);
  return h("section", { class: "card first", hidden: true },
    h("h2", {}, "Create your first workspace"),
    h("p", {},
      "A workspace is an IDE in your browser with a home for your files. It starts in a few seconds."),
    h("ul", { class: "steps" },
      point("Open it and code.", "You get a full IDE with a terminal."),
      point("Leave when you like.", "An unused workspace stops, and later moves to an archive."),
      point("Come back.", "Every file is where you left it.")),
    button({ class: "button", onclick: create }, icon(ICONS.plus), "Create a workspace"));
}

start(({ main, store }) => { new ListPage(main, store); });
