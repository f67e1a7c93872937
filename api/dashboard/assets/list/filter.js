/** Which workspaces are shown, in which order: pure, on the workspaces alone. */

import { isBusy } from "../describe.js";
import { PHASES } from "../words.js";

/** Phases by what a person looks for. */
export const GROUPS = [
  ["all", "All", () => true],
  ["running", PHASES.RUNNING.label, ({ phase }) => phase === "RUNNING"],
  ["busy", "Changing", isBusy],
  ["stopped", PHASES.STANDBY.label, (each) => !isBusy(each) && (each.phase === "STANDBY" || each.phase === "PENDING")],
  ["archived", PHASES.ARCHIVED.label, (each) => !isBusy(each) && each.phase === "ARCHIVED"],
  ["error", PHASES.ERROR.label, ({ needs_person: needed }) => needed],
];

const NAMES = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const LEVELS = ["RUNNING", "STANDBY", "PENDING", "ARCHIVED", "DELETING", "DELETED"];
const level = ({ phase, needs_person: needed }) => (needed ? -1 : LEVELS.indexOf(phase));
const lastUse = (each) => Date.parse(each.last_access_at ?? each.created_at);

export const ORDERS = {
  used: { label: "Last used", compare: (a, b) => lastUse(b) - lastUse(a) },
  name: { label: "Name", compare: (a, b) => NAMES.compare(a.name, b.name) },
  created: { label: "Newest", compare: (a, b) => Date.parse(b.created_at) - Date.parse(a.created_at) },
  phase: { label: "State", compare: (a, b) => level(a) - level(b) || NAMES.compare(a.name, b.name) },
  size: { label: "Archive size", compare: (a, b) => (b.archive?.size_bytes ?? -1) - (a.archive?.size_bytes ?? -1) },
};

export function choose(workspaces, { group, order, search }) {
  const [, , fits] = GROUPS.find(([name]) => name === group) ?? GROUPS[0];
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = workspaces.filter((each) => fits(each) && words.every((word) => mentions(each, word)));
  const { compare } = ORDERS[order] ?? ORDERS.used;
  // By id in the end, so that nothing jumps about.
  return found.sort((a, b) => compare(a, b) || (a.id < b.id ? -1 : 1));
}

export function countGroups(workspaces) {
  return Object.fromEntries(GROUPS.map(([name, , fits]) => [name, workspaces.filter(fits).length]));
}

function mentions({ name, description, image_ref: image, id }, word) {
  return `${name} ${description ?? ""} ${image} ${id}`.toLowerCase().includes(word);
}
