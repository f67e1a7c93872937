/** Search, filter and sort; what is chosen stays in the address, so that it can be kept and shared. */

import { h, icon, say, toggle } from "../dom.js";
import { ICONS } from "../icons.js";
import { choose } from "../components/forms.js";
import { GROUPS, ORDERS } from "./filter.js";

export class Toolbar {
  constructor(changed) {
    this.changed = changed;
    const asked = new URLSearchParams(location.search);
    this.search = h("input", { type: "search", name: "q", "aria-label": "Search workspaces", placeholder: "Search", value: asked.get("q") ?? "",
      oninput: () => this.change() });
    this.order = choose("sort", Object.entries(ORDERS).map(([name, { label }]) => [name, label]), asked.get("sort") ?? "used");
    this.order.addEventListener("change", () => this.change());
    this.order.setAttribute("aria-label", "Sort by");
    this.group = asked.get("show") ?? "all";
    this.counts = new Map();
    this.chips = new Map(GROUPS.map(([name, label]) => [name, this.chip(name, label)]));
    this.element = h("div", { class: "toolbar" },
      h("div", { class: "search" }, icon(ICONS.search), this.search),
      h("div", { class: "chips", role: "group", "aria-label": "Show" }, ...this.chips.values()),
      this.order);
    this.mark();
  }

  get choice() {
    return { search: this.search.value, order: this.order.value, group: this.group };
  }

  /** Groups with nobody in them only take up room. */
  showCounts(counts) {
    for (const [name, chip] of this.chips) {
      say(this.counts.get(name), String(counts[name]));
      toggle(chip, counts[name] > 0 || name === "all" || name === this.group);
    }
  }

  chip(name, label) {
    const count = h("span", { class: "count" });
    this.counts.set(name, count);
    return h("button", { type: "button", class: "chip", "data-group": name,
      onclick: () => { this.group = name; this.mark(); this.change(); } }, `${label} `, count);
  }

  mark() {
    for (const [name, chip] of this.chips) chip.setAttribute("aria-pressed", name === this.group);
  }

  change() {
    const { search, order, group } = this.choice;
    const asked = new URLSearchParams();
    if (search) asked.set("q", search);
    if (order !== "used") asked.set("sort", order);
    if (group !== "all") asked.set("show", group);
    history.replaceState(null, "", asked.size ? `?${asked}` : location.pathname);
    this.changed();
  }
}
