/** What can be done with a workspace, by its phase; and doing it. */

import { patch } from "../api.js";
import { isBusy, isWaiting } from "../describe.js";
import { h, icon } from "../dom.js";
import { ICONS } from "../icons.js";
import { confirmDelete } from "./delete_dialog.js";
import { orOfferPlace } from "./running_limit.js";
import { openMenu } from "./menu.js";
import { keep, openRecovery } from "./recovery.js";
import { orTell } from "./toast.js";

const REQUESTS = {
  start: { label: "Start", icon: ICONS.start, to: "RUNNING" },
  stop: { label: "Stop", icon: ICONS.stop, to: "STANDBY" },
  archive: { label: "Archive", icon: ICONS.archive, to: "ARCHIVED" },
  restore: { label: "Restore", icon: ICONS.restore, to: "RUNNING" },
  unpack: { label: "Restore without starting", icon: ICONS.restore, to: "STANDBY" },
};
const BY_PHASE = {
  PENDING: { shown: ["start"], more: ["archive", "remove"] },
  ARCHIVED: { shown: ["restore"], more: ["unpack", "remove"] },
  STANDBY: { shown: ["open", "start"], more: ["archive", "remove"] },
  RUNNING: { shown: ["open", "stop"], more: ["archive", "remove"] },
};
const NEEDS_PERSON = { shown: ["recover"], more: ["remove"] };
const DELETION_FAILED = { shown: ["recover"], more: ["keep", "purge"] };

/** What the buttons depend on: as long as it is the same, they may stay. */
export function actionsKey(workspace) {
  return [workspace.phase, isBusy(workspace), isWaiting(workspace), workspace.needs_person, workspace.desired_state, workspace.name].join(" ");
}

/** Buttons for a workspace; `store` learns what the API answers. A page that explains the error needs no *Recover*. */
export function actionsOf(workspace, store, { deleted, recoversHere } = {}) {
  const { shown, more } = possible(workspace);
  const wanted = shown.filter((name) => !(recoversHere && name === "recover"));
  const buttons = wanted.map((name, place) => button(name, workspace, store, place === 0));
  if (more.length) buttons.push(moreButton(workspace, store, more, deleted));
  return buttons;
}

function possible(workspace) {
  if (workspace.needs_person) return workspace.deleted_at ? DELETION_FAILED : NEEDS_PERSON;
  if (workspace.desired_state === "DELETED" || workspace.phase.startsWith("DELET")) return { shown: [], more: [] };
  if (!isBusy(workspace) || isWaiting(workspace)) return BY_PHASE[workspace.phase];
  // Its page follows it, and opens the editor as soon as it is there.
  return { shown: workspace.desired_state === "RUNNING" ? ["open"] : [], more: [] };
}

function button(name, workspace, store, isFirst) {
  const look = isFirst ? "button" : "button second";
  if (name === "open") {
    return h("a", { class: look, href: workspace.url, target: "_blank", rel: "noopener", "data-action": name,
      "aria-label": `Open ${workspace.name}` }, icon(ICONS.open), "Open");
  }
  if (name === "recover") {
    return h("button", { type: "button", class: look, "data-action": name, "aria-label": `Recover ${workspace.name}`,
      onclick: () => openRecovery(workspace, store) }, "Recover");
  }
  const { label, icon: path } = REQUESTS[name];
  return h("button", { type: "button", class: look, "data-action": name, "aria-label": `${label} ${workspace.name}`,
    onclick: ({ currentTarget }) => perform(name, workspace, store, currentTarget) }, icon(path), label);
}

function moreButton(workspace, store, names, deleted) {
  return h("button", { type: "button", class: "quiet-button more", "aria-haspopup": "menu", "aria-expanded": "false",
    "aria-label": `More for ${workspace.name}`, "data-action": "more",
    onclick: ({ currentTarget }) => openMenu(currentTarget, names.map((name) => menuItem(name, workspace, store, deleted))),
  }, icon(ICONS.more));
}

function menuItem(name, workspace, store, deleted) {
  if (name === "remove" || name === "purge") {
    const label = name === "purge" ? "Delete for good…" : "Delete…";
    return { label, icon: ICONS.remove, tone: "danger", act: () => confirmDelete(workspace, store, deleted) };
  }
  if (name === "keep") {
    return { label: "Keep the workspace", icon: ICONS.restore, act: () => orTell(() => keep(workspace, store)) };
  }
  const { label, icon: path } = REQUESTS[name];
  return { label, icon: path, act: () => perform(name, workspace, store) };
}

async function perform(name, workspace, store, pressed) {
  if (pressed) pressed.disabled = true;
  await orTell(() => orOfferPlace(() => request(workspace.id, REQUESTS[name].to, store)));
  if (pressed) pressed.disabled = false;
}

async function request(id, to, store) {
  store.put(await patch(`/workspaces/${id}`, { desired_state: to }));
}
