/** The buttons of a workspace, by its state. */

import { patch } from "../api.js";
import { hasChoice, isBusy, isWaiting } from "../describe.js";
import { button, h, icon } from "../dom.js";
import { ICONS } from "../icons.js";
import { openDeleteDialog } from "./delete_dialog.js";
import { openMenu } from "./menu.js";
import { openRecoveryDialog, undelete } from "./recovery.js";
import { orStopAnother } from "./running_limit.js";
import { reportErrors } from "./toast.js";

/** @import { Store } from "../store.js" */
/** @import { DesiredState, Workspace } from "../types.js" */
/** @import { MenuItem } from "./menu.js" */
/** @typedef {{ shown: string[], more: string[] }} Actions */
/** @typedef {{ label: string, icon: string, to: DesiredState }} StateRequest */
/** @typedef {{ recoversHere?: boolean, onDeleted?: () => void }} ActionOptions */

/** @type {Record<string, StateRequest>} */
const REQUESTS = {
  start: { label: "Start", icon: ICONS.start, to: "RUNNING" },
  stop: { label: "Stop", icon: ICONS.stop, to: "STANDBY" },
  archive: { label: "Archive", icon: ICONS.archive, to: "ARCHIVED" },
  restore: { label: "Restore", icon: ICONS.restore, to: "RUNNING" },
  restoreOnly: { label: "Restore without starting", icon: ICONS.restore, to: "STANDBY" },
};
/** @type {Record<string, Actions>} */
const BY_PHASE = {
  PENDING: { shown: ["start"], more: ["archive", "delete"] },
  ARCHIVED: { shown: ["restore"], more: ["restoreOnly", "delete"] },
  STANDBY: { shown: ["open", "start"], more: ["archive", "delete"] },
  RUNNING: { shown: ["open", "stop"], more: ["archive", "delete"] },
};
const FAILED = { shown: ["recover"], more: ["delete"] };
const DELETION_FAILED = { shown: ["recover"], more: ["keep", "purge"] };
const NOTHING = { shown: [], more: [] };

/**
 * While this key is the same, the buttons stay.
 * @param {Workspace} workspace
 */
export function actionsKey(workspace) {
  const { phase, desired_state: desired, name } = workspace;
  return JSON.stringify(
    [phase, isBusy(workspace), isWaiting(workspace), hasChoice(workspace), desired, name]);
}

/**
 * @param {Workspace} workspace
 * @param {Store} store
 * @param {ActionOptions} [options] with `recoversHere` the page itself shows how to recover
 */
export function actionButtons(workspace, store, { recoversHere, onDeleted } = {}) {
  const { shown, more } = possibleActions(workspace);
  const names = shown.filter((name) => !(recoversHere && name === "recover"));
  const buttons = names.map((name, index) => actionButton(name, workspace, store, index === 0));
  return more.length ? [...buttons, moreButton(workspace, store, more, onDeleted)] : buttons;
}

/**
 * @param {Workspace} workspace
 * @returns {Actions}
 */
export function possibleActions(workspace) {
  const { needs_person: failed, deleted_at: deleted, desired_state: desired, phase } = workspace;
  if (failed) return deleted ? DELETION_FAILED : FAILED;
  if (hasChoice(workspace)) return deleted ? { shown: ["recover"], more: [] } : FAILED;
  if (desired === "DELETED" || phase.startsWith("DELET")) return NOTHING;
  if (!isBusy(workspace) || isWaiting(workspace)) return BY_PHASE[phase];
  // The proxy shows the progress there, and opens the IDE as soon as it is ready.
  return desired === "RUNNING" ? { shown: ["open"], more: [] } : NOTHING;
}

/**
 * @param {string} name
 * @param {Workspace} workspace
 * @param {Store} store
 * @param {boolean} isFirst
 * @returns {HTMLElement}
 */
function actionButton(name, workspace, store, isFirst) {
  const style = isFirst ? "button" : "button second";
  if (name === "open") {
    return h("a", { class: style, href: workspace.url, target: "_blank", rel: "noopener", "data-action": name,
      "aria-label": `Open ${workspace.name}` }, icon(ICONS.open), "Open");
  }
  if (name === "recover") {
    const onclick = () => openRecoveryDialog(workspace, store);
    const label = `Recover ${workspace.name}`;
    return button({ class: style, "data-action": name, "aria-label": label, onclick }, "Recover");
  }
  const { label, icon: path } = REQUESTS[name];
  const pressed = button({ class: style, "data-action": name,
    "aria-label": `${label} ${workspace.name}`, onclick: async () => {
      pressed.disabled = true;
      await requestState(name, workspace, store);
      pressed.disabled = false;
    } }, icon(path), label);
  return pressed;
}

/**
 * @param {Workspace} workspace
 * @param {Store} store
 * @param {string[]} names
 * @param {(() => void) | undefined} onDeleted
 */
function moreButton(workspace, store, names, onDeleted) {
  const more = button({ class: "quiet-button more", "aria-haspopup": "menu",
    "aria-expanded": "false", "aria-label": `More for ${workspace.name}`, "data-action": "more",
    onclick: () => openMenu(more, names.map((name) => menuItem(name, workspace, store, onDeleted))),
  }, icon(ICONS.more));
  return more;
}

/**
 * @param {string} name
 * @param {Workspace} workspace
 * @param {Store} store
 * @param {(() => void) | undefined} onDeleted
 * @returns {MenuItem}
 */
function menuItem(name, workspace, store, onDeleted) {
  if (name === "delete" || name === "purge") {
    const label = name === "purge" ? "Delete for good…" : "Delete…";
    const action = () => openDeleteDialog(workspace, store, onDeleted);
    return { label, icon: ICONS.remove, tone: "danger", action };
  }
  if (name === "keep") {
    const action = () => reportErrors(() => undelete(workspace, store));
    return { label: "Keep the workspace", icon: ICONS.restore, action };
  }
  const { label, icon: path } = REQUESTS[name];
  return { label, icon: path, action: () => requestState(name, workspace, store) };
}

/**
 * @param {string} name
 * @param {Workspace} workspace
 * @param {Store} store
 */
function requestState(name, { id }, store) {
  const request = { desired_state: REQUESTS[name].to };
  return reportErrors(() =>
    orStopAnother(async () => store.put(await patch(`/workspaces/${id}`, request))));
}
