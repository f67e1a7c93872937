/** Everybody's workspaces. */

import { get } from "../api.js";
import { h } from "../dom.js";
import { ago, size } from "../format.js";
import { badge, updateBadge } from "../components/badge.js";
import { choose } from "../components/forms.js";
import { orTell } from "../components/toast.js";
import { link } from "../routes.js";
import { PHASES } from "../words.js";
import { section } from "../components/section.js";

const PAGE = 50, PAUSE_MS = 250;

export class AllWorkspaces {
  constructor() {
    this.search = h("input", { type: "search", "aria-label": "Search all workspaces", placeholder: "Search by name or description" });
    const phases = Object.entries(PHASES).filter(([phase]) => !phase.startsWith("DELET")).map(([phase, { label }]) => [phase, label]);
    this.phase = choose("phase", [["", "Any state"], ...phases], "");
    this.phase.setAttribute("aria-label", "State");
    this.phase.addEventListener("change", () => this.again());
    this.search.addEventListener("input", () => { clearTimeout(this.pause); this.pause = setTimeout(() => this.again(), PAUSE_MS); });
    this.list = h("ul", { class: "plain-list compact" });
    this.more = h("button", { type: "button", class: "button second", hidden: true, onclick: () => this.again(this.cursor) }, "More");
    this.element = section("All workspaces", h("div", { class: "beside" }, this.search, this.phase), this.list, this.more);
  }

  again(cursor) {
    return orTell(() => this.load(cursor));
  }

  async load(cursor) {
    const query = new URLSearchParams({ limit: PAGE });
    if (this.search.value) query.set("q", this.search.value);
    if (this.phase.value) query.set("phase", this.phase.value);
    if (cursor) query.set("cursor", cursor);
    const asked = (this.asked = query.toString());
    const { items, next_cursor: next } = await get(`/admin/workspaces?${query}`);
    // A later question may have been answered before this one.
    if (asked !== this.asked) return;
    if (!cursor) this.list.replaceChildren();
    this.list.append(...items.map(item));
    if (!cursor && !items.length) this.list.append(h("li", { class: "quiet" }, "None."));
    this.cursor = next;
    this.more.hidden = !next;
  }
}

function item(workspace) {
  const sign = badge();
  updateBadge(sign, workspace);
  const archive = workspace.archive?.size_bytes == null ? "" : ` · archive ${size(workspace.archive.size_bytes)}`;
  return h("li", {}, h("div", {}, h("a", { href: link(`/workspaces/${workspace.id}`) }, workspace.name),
    h("p", { class: "quiet" }, `${workspace.owner.username} · last used ${ago(workspace.last_access_at)}${archive}`)), sign);
}
