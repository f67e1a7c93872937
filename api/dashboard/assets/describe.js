/** Describe a workspace in the words of words.js. */

import { ahead, size } from "./format.js";
import {
  CONDITIONS, DELETION_FAILED, FAILURES, HEADING_TO, NEXT_CHANGES, NOT_OBSERVED, OPERATIONS, PHASES, RECOVERING,
  UNKNOWN_FAILURE,
} from "./words.js";

const TONES = { ARCHIVED: "deep", RUNNING: "go", ERROR: "warn" };

/** Whether something is being done, or is about to be. */
export function isBusy(workspace) {
  return !workspace.settled;
}

/** Whether it waits for a service that does not answer; people may ask for something else meanwhile. */
export function isWaiting(workspace) {
  return workspace.waiting !== null && workspace.operation === "NONE" && !workspace.recovering;
}

/** The label and tone of its badge. */
export function badgeOf(workspace) {
  if (workspace.needs_person) return phaseBadge("ERROR");
  if (isWaiting(workspace)) return { label: "Waiting…", tone: "move" };
  if (!isBusy(workspace)) return phaseBadge(workspace.phase);
  const doing = workspace.recovering ? RECOVERING
    : OPERATIONS[workspace.operation] ?? HEADING_TO[workspace.desired_state];
  return { label: `${doing}…`, tone: "move" };
}

function phaseBadge(phase) {
  return { label: PHASES[phase].label, tone: TONES[phase] ?? "rest" };
}

/** What went wrong, in a few words. */
export function failureOf({ error, deleted_at: deleted }) {
  return deleted ? DELETION_FAILED : FAILURES[error?.reason]?.headline ?? UNKNOWN_FAILURE;
}

/** What happens next to a workspace at rest, and when. */
export function whatNext(workspace) {
  if (workspace.needs_person) return `${failureOf(workspace)}.`;
  return [restartToApply(workspace), idleChange(workspace)].filter(Boolean).join(" ");
}

function restartToApply(workspace) {
  return workspace.restart_to_apply ? workspace.conditions["infra.configuration_current"].message : "";
}

function idleChange({ next_change: change, phase, archive }) {
  if (change) return `${NEXT_CHANGES[change.to]} ${ahead(change.at)} unless used.`;
  if (phase === "ARCHIVED" && archive?.size_bytes) return `Safe in an archive of ${size(archive.size_bytes)}.`;
  return PHASES[phase].sentence;
}

/** The names of the conditions to show, in order; some matter only if they are not met. */
export function conditionsToShow(conditions) {
  return Object.keys(CONDITIONS).filter((name) =>
    conditions[name] && (!CONDITIONS[name].only_if_false || conditions[name].status === "False"));
}

export function conditionSentence(name, { status, reason, message }) {
  if (status === "Unknown") return NOT_OBSERVED;
  const { reasons, otherwise } = CONDITIONS[name];
  return reasons[reason] ?? otherwise ?? message;
}
