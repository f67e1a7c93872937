/** Search, filter and sort. The choice is kept in the address, so it can be bookmarked and shared. */

import { select } from "../components/forms.js";
import { button, h, icon, setText, setVisible } from "../dom.js";
import { ICONS } from "../icons.js";
import { GROUPS, ORDERS } from "./filter.js";

/** @import { Choice } from "./filter.js" */

export class Toolbar {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    const query = new URLSearchParams(location.search);
    this.search = h("input", { type: "search", name: "q", "aria-label": "Search workspaces",
      placeholder: "Search", value: query.get("q") ?? "", oninput: () => this.change() });
    /** @type {[string, string][]} */
    const orders = Object.entries(ORDERS).map(([name, { label }]) => [name, label]);
    this.order = select("sort", orders, query.get("sort") ?? "used");
    this.order.addEventListener("change", () => this.change());
    this.order.setAttribute("aria-label", "Sort by");
    this.group = query.get("show") ?? "all";
    this.chips = GROUPS.map(({ name, label }) => this.chip(name, label));
    this.element = h("div", { class: "toolbar" },
      h("div", { class: "search" }, icon(ICONS.search), this.search),
      h("div", { class: "chips", role: "group", "aria-label": "Show" }, this.chips.map(({ node }) => node)),
      this.order);
    this.markGroup();
  }

  /** @returns {Choice} */
  get choice() {
    return { search: this.search.value, order: this.order.value, group: this.group };
  }

  /**
   * Empty groups only take up space.
   * @param {Record<string, number>} counts
   */
  showCounts(counts) {
    for (const { name, node, count } of this.chips) {
      setText(count, String(counts[name]));
      setVisible(node, counts[name] > 0 || name === "all" || name === this.group);
    }
  }

  /**
   * @param {string} name
   * @param {string} label
   */
  chip(name, label) {
    const count = h("span", { class: "count" });
    const node = button({ class: "chip", "data-group": name,
      onclick: () => { this.group = name; this.markGroup(); this.change(); } }, `${label} `, count);
    return { name, node, count };
  }

  markGroup() {
    for (const { name, node } of this.chips) node.setAttribute("aria-pressed", String(name === this.group));
  }

  change() {
    const { search, order, group } = this.choice;
    const query = new URLSearchParams();
    if (search) query.set("q", search);
    if (order !== "used") query.set("sort", order);
    if (group !== "all") query.set("show", group);
    history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
    this.onChange();
  }
}
