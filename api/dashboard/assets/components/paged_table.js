/** A table of a log, with filters and pages. */

import { get } from "../api.js";
import { button, h } from "../dom.js";
import { valuesOf } from "./forms.js";
import { section } from "./section.js";
import { reportErrors } from "./toast.js";

/** @import { Values } from "./forms.js" */

const PAGE = 100, PAUSE_MS = 250;

/**
 * @template Item
 * @typedef {{
 *   path: string,
 *   columns: string[],
 *   filters: Node[],
 *   row: (item: Item) => HTMLElement,
 *   onQuery?: (filters: URLSearchParams) => void,
 *   buttons?: HTMLElement[],
 * }} Options
 */

/** @template Item */
export class PagedTable {
  /** @param {Options<Item>} options */
  constructor(options) {
    this.options = options;
    /** @type {string | null} */
    this.cursor = null;
    this.latestQuery = "";
    this.filters = filterForm(options.filters, () => this.reload());
    this.list = h("tbody");
    this.more = button({ class: "button second", hidden: true,
      onclick: () => this.reload(this.cursor) }, "More");
    const titles = options.columns.map((title) => h("th", { scope: "col" }, title));
    const table = h("table", { class: "entries" }, h("thead", {}, h("tr", {}, titles)), this.list);
    this.element = section("Entries", this.filters, h("div", { class: "wide-table" }, table),
      h("div", { class: "buttons" }, this.more, options.buttons ?? []));
  }

  /** @param {string | null} [cursor] */
  reload(cursor) {
    return reportErrors(() => this.load(cursor));
  }

  /** @param {string | null} [cursor] */
  async load(cursor) {
    const filters = filterQuery(valuesOf(this.filters));
    this.options.onQuery?.(filters);
    const query = new URLSearchParams([...filters, ["limit", String(PAGE)]]);
    if (cursor) query.set("cursor", cursor);
    this.latestQuery = query.toString();
    /** @type {{ items: Item[], next_cursor: string | null }} */
    const { items, next_cursor: next } = await get(`${this.options.path}?${query}`);
    // The response to a later query may have arrived first.
    if (query.toString() !== this.latestQuery) return;
    if (!cursor) this.list.replaceChildren();
    this.list.append(...items.map(this.options.row));
    if (!cursor && !items.length) {
      const columns = this.options.columns.length;
      this.list.append(h("tr", {}, h("td", { colspan: columns, class: "quiet" }, "No matching entries.")));
    }
    this.cursor = next;
    this.more.hidden = !next;
  }
}

/**
 * @param {Node[]} fields
 * @param {() => void} onChange
 */
function filterForm(fields, onChange) {
  const form = h("form", { class: "filters" }, fields);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let pause;
  form.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(() => form.checkValidity() && onChange(), PAUSE_MS);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  return form;
}

/**
 * Return the parameters of the API; times are entered in the time zone of the browser.
 * @param {Values} values
 */
function filterQuery(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    const text = value.trim();
    if (!text) continue;
    query.set(name, name === "since" || name === "until" ? new Date(text).toISOString() : text);
  }
  return query;
}
