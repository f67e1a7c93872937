/** The history of a workspace: its operations, and who asked for what. */

import { get } from "../api.js";
import { now } from "../clock.js";
import { section } from "../components/section.js";
import { reportErrors } from "../components/toast.js";
import { button, h, replaceChildren } from "../dom.js";
import { mergeHistory } from "./audit_trail.js";
import { eventItem, operationItem } from "./history_entries.js";

/** @import { EventItem, EventPage, OperationItem, OperationPage } from "../types.js" */
/** @import { Cursors } from "./audit_trail.js" */

const PAGE = 25;
const NO_MORE = { items: [], next_cursor: null };

export class History {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    /** @type {OperationItem[]} */
    this.operations = [];
    /** @type {EventItem[]} */
    this.events = [];
    /** @type {Cursors | undefined} */
    this.cursors = undefined;
    /** @type {Set<string>} */
    this.open = new Set();
    this.list = h("ol", { class: "timeline" });
    this.more = button({ class: "button second", hidden: true, onclick: () => this.loadOlder() },
      "Earlier");
    this.element = section("History",
      h("p", { class: "quiet" }, "Everything that happened here, newest first."), this.list, this.more);
  }

  /** Load the newest page again. Open entries stay open. */
  async load() {
    const [operations, events] = await Promise.all([this.loadOperations(), this.loadEvents()]);
    this.operations = merge(operations.items, this.operations, (each) => each.id);
    this.events = merge(events.items, this.events, (each) => each.id);
    this.cursors ??= [operations.next_cursor, events.next_cursor];
    this.draw();
  }

  async loadOlder() {
    this.more.disabled = true;
    await reportErrors(async () => {
      const [operationCursor, eventCursor] = this.cursors ?? [null, null];
      const [operations, events] = await Promise.all([
        operationCursor ? this.loadOperations(operationCursor) : NO_MORE,
        eventCursor ? this.loadEvents(eventCursor) : NO_MORE,
      ]);
      this.operations.push(...operations.items);
      this.events.push(...events.items);
      this.cursors = [operations.next_cursor, events.next_cursor];
    });
    this.more.disabled = false;
    this.draw();
  }

  /**
   * @param {string} [cursor]
   * @returns {Promise<OperationPage>}
   */
  loadOperations(cursor) {
    return get(`/workspaces/${this.id}/operations?${pageQuery(cursor)}`);
  }

  /**
   * @param {string} [cursor]
   * @returns {Promise<EventPage>}
   */
  loadEvents(cursor) {
    return get(`/workspaces/${this.id}/events?${pageQuery(cursor)}`);
  }

  draw() {
    const longest = Math.max(1, ...this.operations.map((each) => each.duration_seconds ?? 0));
    const context = { workspaceId: this.id, longest, now: now(), open: this.open };
    const cursors = this.cursors ?? [null, null];
    const entries = mergeHistory(this.operations, this.events, cursors);
    replaceChildren(this.list, entries.map((entry) =>
      "operation" in entry ? operationItem(entry, context) : eventItem(entry)));
    this.more.hidden = !cursors.some(Boolean);
  }
}

/** @param {string | undefined} cursor */
function pageQuery(cursor) {
  return new URLSearchParams({ limit: String(PAGE), ...(cursor ? { cursor } : {}) });
}

/**
 * @template {object} Item
 * @param {Item[]} fresh
 * @param {Item[]} known
 * @param {(item: Item) => unknown} keyOf
 */
function merge(fresh, known, keyOf) {
  const keys = new Set(fresh.map(keyOf));
  return [...fresh, ...known.filter((each) => !keys.has(keyOf(each)))];
}
