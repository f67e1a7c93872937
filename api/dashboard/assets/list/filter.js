/** Which workspaces the list shows, and in which order. */

import { isBusy } from "../describe.js";
import { PHASES } from "../words.js";

/** @import { Workspace } from "../types.js" */
/** @typedef {{ name: string, label: string, includes: (workspace: Workspace) => boolean }} Group */
/** @typedef {{ label: string, compare: (a: Workspace, b: Workspace) => number }} Order */
/** @typedef {{ group: string, order: string, search: string }} Choice */

/** @type {Group[]} */
export const GROUPS = [
  { name: "all", label: "All", includes: () => true },
  { name: "running", label: PHASES.RUNNING.label, includes: ({ phase }) => phase === "RUNNING" },
  { name: "busy", label: "Changing", includes: isBusy },
  { name: "stopped", label: PHASES.STANDBY.label,
    includes: (each) => !isBusy(each) && (each.phase === "STANDBY" || each.phase === "PENDING") },
  { name: "archived", label: PHASES.ARCHIVED.label,
    includes: (each) => !isBusy(each) && each.phase === "ARCHIVED" },
  { name: "error", label: PHASES.ERROR.label, includes: ({ needs_person: failed }) => failed },
];

const NAMES = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const PHASE_ORDER = ["RUNNING", "STANDBY", "PENDING", "ARCHIVED", "DELETING", "DELETED"];

/** @param {Workspace} workspace */
const rank = ({ phase, needs_person: failed }) => (failed ? -1 : PHASE_ORDER.indexOf(phase));
/** @param {Workspace} workspace */
const lastUse = ({ last_access_at: used, created_at: created }) => Date.parse(used ?? created);
/** @param {Workspace} workspace */
const archiveSize = ({ archive }) => archive?.size_bytes ?? -1;

/** @type {Record<string, Order>} */
export const ORDERS = {
  used: { label: "Last used", compare: (a, b) => lastUse(b) - lastUse(a) },
  name: { label: "Name", compare: (a, b) => NAMES.compare(a.name, b.name) },
  created: { label: "Newest", compare: (a, b) => Date.parse(b.created_at) - Date.parse(a.created_at) },
  phase: { label: "State", compare: (a, b) => rank(a) - rank(b) || NAMES.compare(a.name, b.name) },
  size: { label: "Archive size", compare: (a, b) => archiveSize(b) - archiveSize(a) },
};

/**
 * @param {Workspace[]} workspaces
 * @param {Choice} choice
 */
export function filterAndSort(workspaces, { group, order, search }) {
  const { includes } = GROUPS.find(({ name }) => name === group) ?? GROUPS[0];
  const terms = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = workspaces.filter((each) => includes(each) && terms.every((term) => mentions(each, term)));
  const { compare } = ORDERS[order] ?? ORDERS.used;
  // Ties go by id, so that rows do not change places.
  return found.sort((a, b) => compare(a, b) || (a.id < b.id ? -1 : 1));
}

/**
 * @param {Workspace[]} workspaces
 * @returns {Record<string, number>}
 */
export function countGroups(workspaces) {
  return Object.fromEntries(GROUPS.map(({ name, includes }) => [name, workspaces.filter(includes).length]));
}

/**
 * @param {Workspace} workspace
 * @param {string} term
 */
function mentions({ name, description, image_ref: image, id }, term) {
  return `${name} ${description ?? ""} ${image} ${id}`.toLowerCase().includes(term);
}
