/** Fields for how long a workspace may stay unused. */

import { capitalize, roundDuration } from "../format.js";
import { field, select } from "./forms.js";

/** @typedef {{ label: string, hint: string, choices: number[] }} IdleTime */

const NEVER = 315360000;
/** @type {{ standby: IdleTime, archive: IdleTime }} */
const IDLE_TIMES = {
  standby: {
    label: "Stop it after",
    hint: "Its files stay on its disk.",
    choices: [600, 1800, 3600, 10800, 28800, 86400, NEVER],
  },
  archive: {
    label: "Then archive it after",
    hint: "Its files move to an archive and come back exactly as they were.",
    choices: [1800, 3600, 86400, 259200, 604800, 2592000, NEVER],
  },
};

/**
 * Both fields; without a workspace they offer the defaults of this CodeHub.
 * @param {Record<"standby" | "archive", { chosen: number | null, inherited: number }>} [current]
 */
export function idleTimeFields(current) {
  return /** @type {const} */ (["standby", "archive"]).map((which) => {
    const { label, hint, choices } = IDLE_TIMES[which];
    const { chosen, inherited } = current?.[which] ?? { chosen: null, inherited: null };
    // A program may have set a time that is not among the choices.
    const seconds = chosen === null || choices.includes(chosen) ? choices : [...choices, chosen];
    const known = inherited !== null && chosen === null ? ` (${roundDuration(inherited)})` : "";
    /** @type {[string | number, string][]} */
    const options = [["", `Default${known}`]];
    for (const each of [...seconds].sort((a, b) => a - b)) {
      options.push([each, capitalize(roundDuration(each))]);
    }
    return field(label, select(`${which}_ttl_seconds`, options, chosen ?? ""), hint);
  });
}

/**
 * Return the chosen times as the API takes them.
 * @param {Record<string, string>} values
 */
export function readIdleTimes({ standby_ttl_seconds: standby, archive_ttl_seconds: archive }) {
  return { standby_ttl_seconds: readSeconds(standby), archive_ttl_seconds: readSeconds(archive) };
}

/** @param {string | undefined} value */
function readSeconds(value) {
  return value ? Number(value) : null;
}
