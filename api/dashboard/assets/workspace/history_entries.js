/** The entries of the history. */

import { get, messageOf } from "../api.js";
import { meter } from "../components/indicators.js";
import { h, replaceChildren } from "../dom.js";
import { exactTime, moment, preciseDuration } from "../format.js";
import { COMPLETED, OPERATIONS, RESULTS, STEPS } from "../words.js";

/** @import { EventItem, OperationItem, StepItem, StepList } from "../types.js" */
/** @import { EventEntry, OperationEntry } from "./audit_trail.js" */

/** @param {EventEntry} entry */
export function eventItem({ at, actor, text }) {
  return h("li", { class: "event" }, h("p", {}, h("strong", {}, actor), ` ${text}`), timeOf(at));
}

/**
 * @param {OperationEntry} entry
 * @param {{ workspaceId: string, longest: number, now: number, open: Set<string> }} context
 */
export function operationItem({ at, operation, attempts }, { workspaceId, longest, now, open }) {
  const { result, ended_at: ended, duration_seconds: took } = operation;
  const seconds = ended ? took ?? 0 : (now - Date.parse(at)) / 1000;
  const title = result === "COMPLETED" ? COMPLETED[operation.operation]
    : [`${OPERATIONS[operation.operation]} `, h("span", { class: "result" }, RESULTS[result])];
  const body = h("div", { class: "detail" });
  const fold = h("details", { open: open.has(at) },
    h("summary", {}, h("span", { class: "title" }, title),
      h("span", { class: "took" }, preciseDuration(seconds)), timeOf(at)), body);
  const fill = () => showDetails(body, operation, attempts, workspaceId);
  if (fold.open) fill();
  fold.addEventListener("toggle", () => {
    if (!fold.open) open.delete(at);
    else if (!open.has(at)) {
      open.add(at);
      fill();
    }
  });
  return h("li", { class: "operation", "data-result": result }, fold,
    meter(`Took ${preciseDuration(seconds)}`, seconds, longest));
}

/**
 * @param {HTMLElement} body
 * @param {OperationItem} operation
 * @param {EventItem[]} attempts
 * @param {string} workspaceId
 */
function showDetails(body, operation, attempts, workspaceId) {
  const { result, message, started_at: started, ended_at: ended, temporal_url: url } = operation;
  const steps = h("ol", { class: "steps" });
  const times = `Began ${exactTime(started)}${ended ? `, ended ${exactTime(ended)}` : ""}.`;
  replaceChildren(body,
    h("p", { class: "quiet" }, `${OPERATIONS[operation.operation]}: ${RESULTS[result]}. ${times}`),
    operation.attempts > 1 && h("p", {}, `${operation.attempts} attempts.`),
    attempts.map(failedAttempt),
    result !== "COMPLETED" && message && h("p", { class: "message" }, message),
    steps,
    url && h("p", {}, h("a", { href: url, target: "_blank", rel: "noopener" },
      "Every detail in the Temporal Web UI")));
  showSteps(steps, operation, workspaceId);
}

/** @param {EventItem} event */
function failedAttempt({ at, detail }) {
  return h("p", { class: "message" }, `${exactTime(at)}: ${detail.message ?? "An attempt failed."}`);
}

/**
 * Temporal keeps the steps only for a while, so there may be none.
 * @param {HTMLElement} list
 * @param {OperationItem} operation
 * @param {string} workspaceId
 */
async function showSteps(list, operation, workspaceId) {
  try {
    /** @type {StepList} */
    const { items, hint } = await get(`/workspaces/${workspaceId}/operations/${operation.id}/steps`);
    replaceChildren(list, items.map(stepItem), hint && h("li", { class: "quiet" }, hint));
  } catch (error) {
    replaceChildren(list, h("li", { class: "quiet" }, messageOf(error)));
  }
}

/** @param {StepItem} step */
function stepItem(step) {
  const { name, scheduled_at: scheduled, started_at: started, ended_at: ended } = step;
  const waited = secondsBetween(scheduled, started);
  const facts = [
    step.operation_attempt > 1 && `attempt ${step.operation_attempt} of the operation`,
    step.attempts > 1 && `${step.attempts} tries`,
    waited > 1 && `waited ${preciseDuration(waited)}`,
    ended ? preciseDuration(secondsBetween(started ?? scheduled, ended)) : "in progress",
  ];
  return h("li", { "data-result": step.result },
    h("span", { class: "step" }, STEPS[name] ?? name.replaceAll("_", " ")),
    h("span", { class: "quiet" }, facts.filter(Boolean).join(", ")),
    step.error && h("p", { class: "message" }, step.error));
}

/**
 * @param {string} began
 * @param {string | null} ended
 */
function secondsBetween(began, ended) {
  return ended ? (Date.parse(ended) - Date.parse(began)) / 1000 : 0;
}

/** @param {string} at */
function timeOf(at) {
  return h("time", { datetime: at, title: exactTime(at) }, moment(at));
}
