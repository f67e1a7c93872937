/** Operations and the audit trail as one story, newest first: pure. */

import { CHOICES, CODEHUB_ACTORS, EVENTS, FAILURES, PURGE_REQUEST, STATE_REQUESTS, UNUSED } from "../words.js";

// What is told by the operation that it belongs to, or by the badge.
const TOLD_ELSEWHERE = new Set(["operation_claimed", "operation_completed", "operation_failed", "attempt_failed", "phase_changed"]);

// What says more than the kind of event does.
const DETAILS = {
  state_requested: ({ detail }) => (detail.purge ? PURGE_REQUEST : STATE_REQUESTS[detail.to]),
  recovery_requested: ({ kind, detail }) => CHOICES[detail.choice] && `${EVENTS[kind]}: ${CHOICES[detail.choice]}`,
  error_found: ({ kind, error_reason: reason }) => FAILURES[reason] && `${EVENTS[kind]}: ${FAILURES[reason].headline}`,
};

/** `{ at, operation, attempts }` or `{ at, actor, words }`. */
export function entriesOf(operations, events, cursors, present) {
  const attempts = events.filter(({ kind }) => kind === "attempt_failed");
  const done = operations.map((operation) => ({
    at: operation.started_at, operation, present, attempts: attempts.filter(({ at }) => isWithin(at, operation)).reverse(),
  }));
  const said = events.filter(({ kind }) => !TOLD_ELSEWHERE.has(kind)).map(({ at, actor, ...event }) => ({
    at, actor: CODEHUB_ACTORS.includes(actor) ? "CodeHub" : actor, words: wordsOf(event) + (actor === "ttl" ? ` ${UNUSED}` : ""),
  }));
  // Further back one of the two lists has not been read yet, so the story would have gaps.
  const reach = [[operations.at(-1)?.started_at, cursors[0]], [events.at(-1)?.at, cursors[1]]]
    .filter(([, more]) => more).map(([at]) => Date.parse(at));
  const since = reach.length ? Math.max(...reach) : -Infinity;
  return [...done, ...said].filter(({ at }) => Date.parse(at) >= since).sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

function wordsOf(event) {
  return DETAILS[event.kind]?.(event) ?? EVENTS[event.kind];
}

function isWithin(at, { started_at: began, ended_at: ended }) {
  return at >= began && (!ended || at <= ended);
}
