/** The dialog that shares a port. */

import { put } from "../api.js";
import { h } from "../dom.js";
import { roundDuration } from "../format.js";
import { AUDIENCES } from "../words.js";
import { openDialog } from "./dialog.js";
import { createForm, field, select } from "./forms.js";

/** @import { PortList, SharedPort } from "../types.js" */

const HOUR = 3600, DAY = 24 * HOUR;
const LIFETIMES = [HOUR, 8 * HOUR, DAY, 7 * DAY, 30 * DAY];
const WHAT = "Others can open this port, but nothing else of the workspace, and they cannot start it.";

/**
 * @param {string} id of the workspace
 * @param {number} port
 * @param {Pick<PortList, "sharing" | "max_share_seconds">} rules
 * @param {(shared: SharedPort) => Promise<unknown>} onShared
 */
export function openShareDialog(id, port, rules, onShared) {
  const usual = Math.min(8 * HOUR, rules.max_share_seconds ?? Infinity);
  const form = createForm({ button: "Share", submit: async ({ audience, lifetime }) => {
    const expires = lifetime ? Number(lifetime) : null;
    const shared = await put(`/workspaces/${id}/ports/${port}/share`, { audience, expires_in: expires });
    dialog.close();
    await onShared(shared);
  } },
  field("With", select("audience", audiencesOf(rules), "users")),
  field("For", select("lifetime", lifetimesOf(rules), usual)));
  const dialog = openDialog(`Share port ${port}`, h("p", {}, WHAT), form);
}

/**
 * Return the audiences that administrators allow.
 * @param {Pick<PortList, "sharing">} rules
 * @returns {[string, string][]}
 */
export function audiencesOf({ sharing }) {
  const allowed = sharing === "public" ? ["users", "public"] : ["users"];
  return allowed.map((audience) => [audience, capitalized(AUDIENCES[audience])]);
}

/**
 * Return the lifetimes that administrators allow, in seconds; without a limit, also forever.
 * @param {Pick<PortList, "max_share_seconds">} rules
 * @returns {[string | number, string][]}
 */
export function lifetimesOf({ max_share_seconds: longest }) {
  if (longest === null) return [...LIFETIMES.map(choice), ["", "Until you stop sharing it"]];
  return [...LIFETIMES.filter((each) => each < longest), longest].map(choice);
}

/** @param {string} text */
function capitalized(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * @param {number} seconds
 * @returns {[number, string]}
 */
function choice(seconds) {
  return [seconds, roundDuration(seconds)];
}
