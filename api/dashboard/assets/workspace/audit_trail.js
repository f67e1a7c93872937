/** Merge operations and audit trail events into one history, newest first. */

import {
  CHOICES, CODEHUB_ACTORS, EVENTS, FAILURES, PURGE_REQUEST, STATE_REQUESTS, UNUSED,
} from "../words.js";

/** @import { EventItem, OperationItem } from "../types.js" */
/** @typedef {{ operation: OperationItem, attempts: EventItem[], at: string }} OperationEntry */
/** @typedef {{ actor: string, text: string, at: string }} EventEntry */
/** @typedef {[operations: string | null, events: string | null]} Cursors */

// The operation that they belong to, or the badge, says the same.
const REDUNDANT = new Set([
  "operation_claimed", "operation_completed", "operation_failed", "attempt_failed", "phase_changed",
]);

/** @type {Record<string, (event: EventItem) => string | undefined>} */
const DETAILS = {
  state_requested: ({ detail }) => (detail.purge ? PURGE_REQUEST : STATE_REQUESTS[detail.to]),
  recovery_requested: ({ kind, detail }) => withDetail(kind, CHOICES[detail.choice]),
  error_found: ({ kind, error_reason: reason }) => withDetail(kind, FAILURES[reason ?? ""]?.headline),
};

/**
 * @param {OperationItem[]} operations newest first
 * @param {EventItem[]} events newest first
 * @param {Cursors} cursors where either list has more
 * @returns {(OperationEntry | EventEntry)[]}
 */
export function mergeHistory(operations, events, cursors) {
  const failedAttempts = events.filter(({ kind }) => kind === "attempt_failed").reverse();
  const operationEntries = operations.map((operation) => ({
    at: operation.started_at, operation, attempts: failedAttempts.filter(({ at }) => isDuring(at, operation)),
  }));
  const eventEntries = events.filter(({ kind }) => !REDUNDANT.has(kind)).map(eventEntry);
  const since = Math.max(
    cursors[0] ? Date.parse(operations.at(-1)?.started_at ?? "") : -Infinity,
    cursors[1] ? Date.parse(events.at(-1)?.at ?? "") : -Infinity,
  );
  // Before that time one of the two lists is not loaded yet, so the history would have gaps.
  return [...operationEntries, ...eventEntries]
    .filter(({ at }) => Date.parse(at) >= since)
    .sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/**
 * @param {EventItem} event
 * @returns {EventEntry}
 */
function eventEntry(event) {
  const { at, actor, kind } = event;
  const sentence = DETAILS[kind]?.(event) ?? EVENTS[kind] ?? kind.replaceAll("_", " ");
  return {
    at,
    actor: CODEHUB_ACTORS.includes(actor) ? "CodeHub" : actor,
    text: actor === "ttl" ? `${sentence} ${UNUSED}` : sentence,
  };
}

/**
 * @param {string} kind
 * @param {string | undefined} detail
 */
function withDetail(kind, detail) {
  return detail && `${EVENTS[kind]}: ${detail}`;
}

/**
 * @param {string} at
 * @param {OperationItem} operation
 */
function isDuring(at, { started_at: started, ended_at: ended }) {
  return at >= started && (!ended || at <= ended);
}
