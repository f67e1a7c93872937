/** Operations and the audit trail as one story, newest first: pure. */

import { FAILURES } from "../words.js";

// What is told by the operation that it belongs to, or by the badge.
const TOLD_ELSEWHERE = new Set(["operation_claimed", "operation_completed", "operation_failed", "attempt_failed", "phase_changed"]);

const WISHES = { RUNNING: "to start it", STANDBY: "to stop it", ARCHIVED: "to archive it", DELETED: "to delete it" };
const SENTENCES = {
  created: () => "created it",
  state_requested: ({ detail }) => `asked ${WISHES[detail.to] ?? `for ${detail.to}`}`,
  metadata_changed: () => "changed its settings",
  undeleted: () => "took the deletion back",
  recovery_requested: ({ detail }) => `asked to recover${detail.choice ? ` (${detail.choice.replace("_", " ")})` : ""}`,
  recovered: () => "recovered it",
  recovery_refused: () => "could not recover it that way",
  error_found: ({ error_reason: reason }) => `noticed a problem: ${(FAILURES[reason] ?? reason).toLowerCase()}`,
};

const OURSELVES = new Set(["control-plane", "ttl"]);

/** `{ at, operation, attempts }` or `{ at, actor, words }`. */
export function entriesOf(operations, events, cursors, present) {
  const attempts = events.filter(({ kind }) => kind === "attempt_failed");
  const done = operations.map((operation) => ({
    at: operation.started_at, operation, present, attempts: attempts.filter(({ at }) => isWithin(at, operation)).reverse(),
  }));
  const said = events.filter(({ kind }) => !TOLD_ELSEWHERE.has(kind)).map(({ at, actor, ...event }) => ({
    at, actor: OURSELVES.has(actor) ? "CodeHub" : actor, words: wordsOf(event) + (actor === "ttl" ? ", as nobody used it" : ""),
  }));
  // Further back one of the two lists has not been read yet, so the story would have gaps.
  const reach = [[operations.at(-1)?.started_at, cursors[0]], [events.at(-1)?.at, cursors[1]]]
    .filter(([, more]) => more).map(([at]) => Date.parse(at));
  const since = reach.length ? Math.max(...reach) : -Infinity;
  return [...done, ...said].filter(({ at }) => Date.parse(at) >= since).sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

function wordsOf(event) {
  return SENTENCES[event.kind]?.(event) ?? event.kind.replaceAll("_", " ");
}

function isWithin(at, { started_at: began, ended_at: ended }) {
  return at >= began && (!ended || at <= ended);
}
