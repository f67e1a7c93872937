/** Describe a workspace in the words of words.js. */

import { ahead, moment, size } from "./format.js";
import {
  CONDITIONS, DELETION_FAILED, FAILURES, HEADING_TO, NEXT_CHANGES, NOT_OBSERVED, OPERATIONS, OUT_OF_REACH,
  PHASES, RECOVERING, UNKNOWN_FAILURE,
} from "./words.js";

/** @import { ArchiveItem, ArchiveOption, ConditionView, Workspace } from "./types.js" */
/** @typedef {{ label: string, tone: string }} Badge */
/** @typedef {{ title: string, reasons: Record<string, string>, otherwise: string | null,
 *    only_if_false: boolean }} ConditionWords */

/** @type {Record<string, string>} */
const TONES = { ARCHIVED: "deep", RUNNING: "go", ERROR: "warn" };
/** @type {Record<string, ConditionWords>} */
const CONDITION_WORDS = CONDITIONS;

/**
 * Whether something is being done, or is about to be.
 * @param {Workspace} workspace
 */
export function isBusy(workspace) {
  return !workspace.settled;
}

/**
 * Whether it waits for a service that does not answer; its owner may ask for something else meanwhile.
 * @param {Workspace} workspace
 */
export function isWaiting(workspace) {
  return workspace.waiting !== null && workspace.operation === "NONE" && !workspace.recovering;
}

/**
 * @param {Workspace} workspace
 * @returns {Badge}
 */
export function badgeOf(workspace) {
  if (workspace.needs_person) return phaseBadge("ERROR");
  if (isWaiting(workspace)) return { label: "Waiting…", tone: "move" };
  if (!isBusy(workspace)) return phaseBadge(workspace.phase);
  const doing = workspace.recovering ? RECOVERING
    : OPERATIONS[workspace.operation] ?? HEADING_TO[workspace.desired_state];
  return { label: `${doing}…`, tone: "move" };
}

/** @param {string} phase */
function phaseBadge(phase) {
  return { label: PHASES[phase].label, tone: TONES[phase] ?? "rest" };
}

/**
 * Whether its owner can choose how to go on: it has an error, or its files are out of reach.
 * @param {Workspace} workspace
 */
export function hasChoice({ needs_person: failed, out_of_reach: lost, recover }) {
  return failed || (lost !== null && recover !== null);
}

/**
 * What went wrong, in a few words.
 * @param {Workspace} workspace
 */
export function failureOf({ error, deleted_at: deleted, out_of_reach: lost }) {
  if (lost) return OUT_OF_REACH.headline;
  return deleted ? DELETION_FAILED : FAILURES[error?.reason ?? ""]?.headline ?? UNKNOWN_FAILURE;
}

/**
 * What happens next to a workspace at rest, and when.
 * @param {Workspace} workspace
 */
export function whatNext(workspace) {
  if (workspace.needs_person) return `${failureOf(workspace)}.`;
  return [workspace.disk.message, restartToApply(workspace), idleChange(workspace)].filter(Boolean).join(" ");
}

/**
 * Return how much disk space the workspace uses, or nothing if it was never measured.
 * @param {Workspace} workspace
 */
export function diskSentence({ disk: { used_bytes: used, limit_bytes: limit, complete } }) {
  if (used === null) return "";
  const amount = complete ? size(used) : `at least ${size(used)}`;
  return limit ? `Uses ${amount} of ${size(limit)} of disk space.` : `Uses ${amount} of disk space.`;
}

/** @param {Workspace} workspace */
function restartToApply(workspace) {
  return workspace.restart_to_apply ? workspace.conditions["infra.configuration_current"].message : "";
}

/** @param {Workspace} workspace */
function idleChange({ next_change: change, phase, archive }) {
  if (change) return `${NEXT_CHANGES[change.to]} ${ahead(change.at)} unless used.`;
  const bytes = archive?.size_bytes;
  return phase === "ARCHIVED" && bytes ? `Safe in an archive of ${size(bytes)}.` : PHASES[phase].sentence;
}

/**
 * The names of the conditions to show, in order; some matter only if they are not met.
 * @param {Record<string, ConditionView>} conditions
 */
export function conditionsToShow(conditions) {
  return Object.keys(CONDITION_WORDS).filter((name) =>
    conditions[name] && (!CONDITION_WORDS[name].only_if_false || conditions[name].status === "False"));
}

/**
 * @param {string} name
 * @param {Pick<ConditionView, "status" | "reason" | "message">} condition
 */
export function conditionSentence(name, { status, reason, message }) {
  if (status === "Unknown") return NOT_OBSERVED;
  const { reasons, otherwise } = CONDITION_WORDS[name];
  return reasons[reason] ?? otherwise ?? message;
}

/** @param {{ size_bytes: number | null }} archive */
export function archiveSize({ size_bytes: bytes }) {
  return bytes === null ? "size unknown" : size(bytes);
}

/** @param {Pick<ArchiveItem | ArchiveOption, "verified_at">} archive */
export function archiveVerification({ verified_at: time }) {
  return time ? `verified ${moment(time)}` : "not verified yet";
}
