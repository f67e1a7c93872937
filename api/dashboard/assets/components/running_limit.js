/** The running limit: what takes the places, and stopping one of them to go on. */

import { patch } from "../api.js";
import { h } from "../dom.js";
import { HEADING_TO, OPERATIONS, PHASES } from "../words.js";
import { openDialog } from "./dialog.js";

const WAIT_SECONDS = 60;

/** Do it; where no place is left, offer to stop something and do it then. */
export async function orOfferPlace(action) {
  try {
    return await action();
  } catch (error) {
    if (error.code !== "LIMIT_EXCEEDED") throw error;
    offerPlace(error, action);
    return undefined;
  }
}

function offerPlace(refusal, action) {
  const running = refusal.problem.running ?? [];
  const note = h("p", { role: "status", class: "quiet" });
  const list = h("ul", { class: "places" }, running.map((each) => place(each, async (button) => {
    button.disabled = true;
    note.textContent = `Stopping ${each.name}. This goes on by itself.`;
    try {
      await patch(`/workspaces/${each.id}?wait=${WAIT_SECONDS}`, { desired_state: "STANDBY" });
      dialog.close();
      await orOfferPlace(action);
    } catch (error) {
      note.textContent = error.message;
      button.disabled = false;
    }
  })));
  const words = running.length
    ? "A stopped workspace keeps all its files."
    : "None of them is yours, so wait a little and try again.";
  const dialog = openDialog(refusal.problem.scope === "global" ? "Every place is taken" : "Your places are taken",
    h("p", {}, refusal.message), h("p", {}, words), running.length ? list : null, note);
}

function place(each, stop) {
  const stops = each.desired_state !== "RUNNING";
  const button = h("button", { type: "button", class: "button second", "aria-label": `Stop ${each.name}`,
    onclick: () => stop(button) }, "Stop");
  return h("li", {}, h("p", {}, h("strong", {}, each.name), h("span", {}, stateOf(each))), stops ? null : button);
}

function stateOf({ phase, desired_state: desired }) {
  if (desired !== "RUNNING") return `${HEADING_TO[desired]}…`;
  return phase === "RUNNING" || phase === "ERROR" ? PHASES[phase].label : `${OPERATIONS.STARTING}…`;
}
