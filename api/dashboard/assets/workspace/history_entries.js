/** The lines of the flight recorder. */

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { exactly, measured, moment } from "../format.js";
import { meter } from "../components/meter.js";
import { COMPLETED, OPERATIONS, RESULTS, STEPS } from "../words.js";

export function eventEntry({ at, actor, words }) {
  return h("li", { class: "event" }, h("p", {}, h("strong", {}, actor), ` ${words}`), when(at));
}

/** Its bar is as long as it took, beside the longest one. */
export function operationEntry({ at, operation, attempts, present }, longest, workspaceId, open) {
  const seconds = operation.ended_at ? operation.duration_seconds : (present - Date.parse(at)) / 1000;
  const title = (operation.result === "COMPLETED" ? COMPLETED : OPERATIONS)[operation.operation];
  const key = operation.started_at;
  const body = h("div", { class: "detail" });
  const fold = h("details", { open: open.has(key) },
    h("summary", {}, h("span", { class: "title" }, title, operation.result === "COMPLETED" ? null : h("span", { class: "result" }, ` ${RESULTS[operation.result]}`)),
      h("span", { class: "took" }, measured(seconds)), when(at)),
    body);
  const fill = () => showDetail(body, operation, attempts, workspaceId);
  if (fold.open) fill();
  fold.addEventListener("toggle", () => {
    if (!fold.open) return open.delete(key);
    if (!open.has(key)) fill();
    return open.add(key);
  });
  return h("li", { class: "operation", "data-result": operation.result }, fold, meter(`Took ${measured(seconds)}`, seconds, longest));
}

function showDetail(body, operation, attempts, workspaceId) {
  const steps = h("ol", { class: "steps" });
  replace(body,
    h("p", { class: "quiet" }, `${OPERATIONS[operation.operation]}: ${RESULTS[operation.result]}. Began ${exactly(operation.started_at)}${operation.ended_at ? `, ended ${exactly(operation.ended_at)}` : ""}.`),
    operation.attempts > 1 ? h("p", {}, `${operation.attempts} attempts.`) : null,
    attempts.map((each) => h("p", { class: "message" }, `${exactly(each.at)}: ${each.detail?.message ?? each.error_reason ?? "an attempt failed"}`)),
    operation.message && operation.result !== "COMPLETED" ? h("p", { class: "message" }, operation.message) : null,
    steps,
    operation.temporal_url ? h("p", {}, h("a", { href: operation.temporal_url, target: "_blank", rel: "noopener" }, "Every detail in the Temporal Web UI")) : null);
  showSteps(steps, operation, workspaceId);
}

/** Temporal keeps them for a while only, so there may be none. */
async function showSteps(list, operation, workspaceId) {
  try {
    const { items, hint } = await get(`/workspaces/${workspaceId}/operations/${operation.id}/steps`);
    replace(list, items.map(step), hint ? h("li", { class: "quiet" }, hint) : null);
  } catch (error) {
    replace(list, h("li", { class: "quiet" }, error.message));
  }
}

function step(each) {
  const words = [];
  if (each.operation_attempt > 1) words.push(`attempt ${each.operation_attempt} of the operation`);
  if (each.attempts > 1) words.push(`${each.attempts} tries`);
  const waited = secondsBetween(each.scheduled_at, each.started_at);
  if (waited > 1) words.push(`waited ${measured(waited)}`);
  words.push(each.ended_at ? measured(secondsBetween(each.started_at ?? each.scheduled_at, each.ended_at)) : "in progress");
  return h("li", { "data-result": each.result }, h("span", { class: "step" }, STEPS[each.name] ?? each.name.replaceAll("_", " ")), h("span", { class: "quiet" }, words.join(", ")),
    each.error ? h("p", { class: "message" }, each.error) : null);
}

function secondsBetween(began, ended) {
  return began && ended ? (Date.parse(ended) - Date.parse(began)) / 1000 : 0;
}

function when(at) {
  return h("time", { datetime: at, title: exactly(at) }, moment(at));
}
