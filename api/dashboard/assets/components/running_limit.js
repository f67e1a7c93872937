/** The dialog for a running limit that is reached: stop a workspace to make room. */

import { ApiError, messageOf, patch } from "../api.js";
import { button, h, setText } from "../dom.js";
import { HEADING_TO, OPERATIONS, PHASES } from "../words.js";
import { openDialog } from "./dialog.js";

/** @import { RunningItem } from "../types.js" */

const WAIT_SECONDS = 60;

/**
 * Run an action. If the running limit refuses it, offer to stop a workspace and run it again afterwards.
 * @param {() => Promise<void>} action
 */
export async function orStopAnother(action) {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof ApiError) || error.problem.code !== "LIMIT_EXCEEDED") throw error;
    openLimitDialog(error, action);
  }
}

/**
 * @param {ApiError} error
 * @param {() => Promise<void>} action
 */
function openLimitDialog(error, action) {
  const running = error.problem.running ?? [];
  const note = h("p", { role: "status", class: "quiet" });
  /** @type {(each: RunningItem, pressed: HTMLButtonElement) => Promise<void>} */
  const stop = async (each, pressed) => {
    pressed.disabled = true;
    setText(note, `Stopping ${each.name}. Your request continues afterwards.`);
    try {
      await patch(`/workspaces/${each.id}?wait=${WAIT_SECONDS}`, { desired_state: "STANDBY" });
      dialog.close();
      await orStopAnother(action);
    } catch (failure) {
      setText(note, messageOf(failure));
      pressed.disabled = false;
    }
  };
  const title = error.problem.scope === "global" ? "CodeHub is at its limit" : "You have reached your limit";
  const hint = running.length ? "A stopped workspace keeps all its files."
    : "None of the running workspaces is yours. Wait a little and try again.";
  const list = running.length ? h("ul", { class: "slots" }, running.map((each) => slot(each, stop))) : null;
  const dialog = openDialog(title, h("p", {}, error.message), h("p", {}, hint), list, note);
}

/**
 * @param {RunningItem} each
 * @param {(each: RunningItem, pressed: HTMLButtonElement) => void} stop
 */
function slot(each, stop) {
  const control = button({ class: "button second", "aria-label": `Stop ${each.name}`,
    onclick: () => stop(each, control) }, "Stop");
  return h("li", {}, h("p", {}, h("strong", {}, each.name), h("span", {}, stateOf(each))),
    each.desired_state === "RUNNING" ? control : null);
}

/** @param {RunningItem} each */
function stateOf({ phase, desired_state: desired }) {
  if (desired !== "RUNNING") return `${HEADING_TO[desired]}…`;
  return phase === "RUNNING" || phase === "ERROR" ? PHASES[phase].label : `${OPERATIONS.STARTING}…`;
}
