/** Everybody's workspaces. */

import { get } from "../api.js";
import { select } from "../components/forms.js";
import { badge, updateBadge } from "../components/indicators.js";
import { section } from "../components/section.js";
import { reportErrors } from "../components/toast.js";
import { button, h } from "../dom.js";
import { ago, size } from "../format.js";
import { link } from "../routes.js";
import { PHASES } from "../words.js";

/** @import { Workspace, WorkspacePage } from "../types.js" */

const PAGE = 50, PAUSE_MS = 250;

export class AllWorkspaces {
  constructor() {
    /** @type {string | null} */
    this.cursor = null;
    this.latestQuery = "";
    this.search = h("input", { type: "search", "aria-label": "Search all workspaces",
      placeholder: "Search by name or description" });
    /** @type {[string, string][]} */
    const phases = Object.entries(PHASES).filter(([phase]) => !phase.startsWith("DELET"))
      .map(([phase, { label }]) => [phase, label]);
    this.phase = select("phase", [["", "Any state"], ...phases], "");
    this.phase.setAttribute("aria-label", "State");
    this.phase.addEventListener("change", () => this.reload());
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let pause;
    this.search.addEventListener("input", () => {
      clearTimeout(pause);
      pause = setTimeout(() => this.reload(), PAUSE_MS);
    });
    this.list = h("ul", { class: "plain-list compact" });
    this.more = button({ class: "button second", hidden: true,
      onclick: () => this.reload(this.cursor) }, "More");
    const controls = h("div", { class: "beside" }, this.search, this.phase);
    this.element = section("All workspaces", controls, this.list, this.more);
  }

  /** @param {string | null} [cursor] */
  reload(cursor) {
    return reportErrors(() => this.load(cursor));
  }

  /** @param {string | null} [cursor] */
  async load(cursor) {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (this.search.value) query.set("q", this.search.value);
    if (this.phase.value) query.set("phase", this.phase.value);
    if (cursor) query.set("cursor", cursor);
    this.latestQuery = query.toString();
    /** @type {WorkspacePage} */
    const { items, next_cursor: next } = await get(`/admin/workspaces?${query}`);
    // The response to a later query may have arrived first.
    if (query.toString() !== this.latestQuery) return;
    if (!cursor) this.list.replaceChildren();
    this.list.append(...items.map(item));
    if (!cursor && !items.length) this.list.append(h("li", { class: "quiet" }, "No workspace matches."));
    this.cursor = next;
    this.more.hidden = !next;
  }
}

/** @param {Workspace} workspace */
function item(workspace) {
  const state = badge();
  updateBadge(state, workspace);
  const { id, name, owner, last_access_at: used } = workspace;
  const bytes = workspace.archive?.size_bytes ?? null;
  const archive = bytes === null ? "" : ` · archive ${size(bytes)}`;
  return h("li", {}, h("div", {}, h("a", { href: link(`/workspaces/${id}`) }, name),
    h("p", { class: "quiet" }, `${owner.username} · last used ${ago(used)}${archive}`)), state);
}
