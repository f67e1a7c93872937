/** The flight recorder: every operation with its attempts, waits and errors, and who asked for what in between. */

import { get } from "../api.js";
import { now } from "../clock.js";
import { h, replace } from "../dom.js";
import { toast } from "../components/toast.js";
import { entriesOf } from "./audit_trail.js";
import { eventEntry, operationEntry } from "./history_entries.js";
import { section } from "../components/section.js";

const PAGE = 25;

export class Timeline {
  constructor(id) {
    Object.assign(this, { id, operations: [], events: [], open: new Set() });
    this.list = h("ol", { class: "timeline" });
    this.more = h("button", { type: "button", class: "button second", hidden: true, onclick: () => this.loadOlder() }, "Earlier");
    this.element = section("Flight recorder",
      h("p", { class: "quiet" }, "Everything that was done here, newest first."), this.list, this.more);
  }

  /** The newest page again; what was unfolded stays so. */
  async load() {
    const [operations, events] = await this.fetch(null, null);
    this.operations = merge(operations.items, this.operations, (each) => each.started_at + each.operation);
    this.events = merge(events.items, this.events, (each) => each.id);
    this.cursors ??= [operations.next_cursor, events.next_cursor];
    this.draw();
  }

  async loadOlder() {
    this.more.disabled = true;
    try {
      const [operations, events] = await this.fetch(...this.cursors);
      this.operations.push(...operations.items);
      this.events.push(...events.items);
      this.cursors = [operations.next_cursor, events.next_cursor];
    } catch (error) {
      toast(error.message, { tone: "warn" });
    }
    this.more.disabled = false;
    this.draw();
  }

  fetch(operationCursor, eventCursor) {
    const ask = (what, cursor, skip) =>
      skip ? { items: [], next_cursor: null } : get(`/workspaces/${this.id}/${what}?limit=${PAGE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
    const older = this.cursors && (operationCursor || eventCursor);
    return Promise.all([ask("operations", operationCursor, older && !operationCursor), ask("events", eventCursor, older && !eventCursor)]);
  }

  draw() {
    const longest = Math.max(1, ...this.operations.map((each) => each.duration_seconds ?? 0));
    const entries = entriesOf(this.operations, this.events, this.cursors, now());
    replace(this.list, entries.map((entry) =>
      entry.operation ? operationEntry(entry, longest, this.id, this.open) : eventEntry(entry)));
    this.more.hidden = !this.cursors.some(Boolean);
  }
}

function merge(fresh, known, keyOf) {
  const keys = new Set(fresh.map(keyOf));
  return [...fresh, ...known.filter((each) => !keys.has(keyOf(each)))];
}
