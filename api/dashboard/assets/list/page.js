/** The list of one's workspaces. */

import { every } from "../clock.js";
import { h, icon, say, toggle } from "../dom.js";
import { start } from "../page.js";
import { ICONS } from "../icons.js";
import { choose, countGroups } from "./filter.js";
import { Deleted } from "./deleted.js";
import { Row } from "./row.js";
import { Toolbar } from "./toolbar.js";
import { openCreate } from "../components/create_dialog.js";
import { orTell, toast } from "../components/toast.js";

class ListPage {
  constructor(main, store) {
    Object.assign(this, { store, rows: new Map(), known: new Map() });
    const create = () => openCreate(store, ({ id }) => this.show(id));
    this.summary = h("p", { class: "quiet", id: "summary" });
    this.toolbar = new Toolbar(() => this.draw());
    this.list = h("ul", { class: "rows", "aria-label": "Workspaces" });
    this.nothing = h("p", { class: "lone quiet", hidden: true }, "No workspace fits. Look for something else, or show all.");
    this.first = firstRun(create);
    this.deleted = new Deleted(store);
    this.bar = h("div", { class: "head" }, h("div", {}, h("h1", {}, "Workspaces"), this.summary),
      h("button", { type: "button", class: "button", id: "create", onclick: create }, icon(ICONS.plus), "New workspace"));
    main.append(this.bar, this.toolbar.element, this.list, this.nothing, this.first, this.deleted.element);
    store.subscribe((changed) => this.update(changed));
    every(1000, () => this.tick());
    orTell(() => this.deleted.load());
  }

  update(changed) {
    let someGone = false;
    for (const id of changed) {
      const workspace = this.store.get(id);
      if (!workspace) someGone = this.rows.delete(id) || someGone;
      else this.note(workspace);
      this.rows.get(id)?.update(workspace);
    }
    if (someGone) orTell(() => this.deleted.load());
    this.draw();
  }

  /** Rows for those that are shown now, in their order; a row that stays where it is is not touched. */
  draw() {
    if (!this.store.loaded) return;
    const all = [...this.store.workspaces.values()];
    const shown = choose(all, this.toolbar.choice);
    let place = this.list.firstElementChild;
    for (const { id } of shown) {
      const { element } = this.row(id);
      if (element === place) place = place.nextElementSibling;
      else this.list.insertBefore(element, place);
    }
    while (place) [place] = [place.nextElementSibling, place.remove()];
    this.toolbar.showCounts(countGroups(all));
    toggle(this.first, all.length === 0);
    toggle(this.toolbar.element, all.length > 0);
    toggle(this.nothing, all.length > 0 && shown.length === 0);
    const running = all.filter(({ phase }) => phase === "RUNNING").length;
    say(this.summary, all.length ? `${running} running, ${all.length} in all` : "");
  }

  row(id) {
    let row = this.rows.get(id);
    if (!row) {
      row = new Row(id, this.store);
      row.update(this.store.get(id));
      this.rows.set(id, row);
    }
    return row;
  }

  tick() {
    for (const row of this.rows.values()) row.tick();
  }

  /** Somebody who waits for a start wants to know when it is there. */
  note({ id, name, phase, url, needs_person: needed }) {
    const before = this.known.get(id);
    this.known.set(id, { phase, needed });
    if (before && before.phase !== "RUNNING" && phase === "RUNNING") {
      const open = h("a", { href: url, target: "_blank", rel: "noopener" }, "Open");
      toast(`${name} is ready.`, { action: open });
    }
    if (before && !before.needed && needed) toast(`${name} needs you.`, { tone: "warn" });
  }

  show(id) {
    this.draw();
    const { element } = this.row(id);
    element.scrollIntoView({ block: "nearest" });
    element.querySelector("a").focus();
  }
}

function firstRun(create) {
  return h("section", { class: "card first", hidden: true },
    h("h2", {}, "Your first workspace"),
    h("p", {}, "A workspace is an editor in your browser with a home for your files. It starts in a few seconds."),
    h("ul", { class: "steps" },
      h("li", {}, h("strong", {}, "Open it and code."), " It is a real editor, with a terminal."),
      h("li", {}, h("strong", {}, "Leave when you like."), " What nobody uses stops by itself, and is archived later."),
      h("li", {}, h("strong", {}, "Come back."), " Every file is where you left it.")),
    h("button", { type: "button", class: "button", onclick: create }, icon(ICONS.plus), "Create a workspace"));
}

start(({ main, store }) => { new ListPage(main, store); });
