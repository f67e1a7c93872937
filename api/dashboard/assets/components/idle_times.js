/** How long a workspace may stay unused: sensible choices, and whatever else was set by a program. */

import { span } from "../format.js";
import { choose, field } from "./forms.js";

const CHOICES = {
  standby: [600, 1800, 3600, 10800, 28800, 86400, 315360000],
  archive: [1800, 3600, 86400, 259200, 604800, 2592000, 315360000],
};
const LABELS = { standby: "Stop it after", archive: "Then archive it after" };
const HINTS = { standby: "Its files stay on its disk.", archive: "Its files move to an archive, and come back exactly as they were." };

/** `chosen` is what is set; `inherited` what applies where nothing is. */
export function ttlChoice(which, chosen = null, inherited = null) {
  const seconds = [...CHOICES[which]];
  if (chosen !== null && !seconds.includes(chosen)) seconds.push(chosen);
  const usual = inherited === null || chosen !== null ? "As usual here" : `As usual here (${span(inherited)})`;
  const options = [["", usual], ...seconds.sort((a, b) => a - b).map((each) => [each, capital(span(each))])];
  return field(LABELS[which], choose(`${which}_ttl_seconds`, options, chosen ?? ""), { hint: HINTS[which] });
}

export function readTtl(value) {
  return value === "" || value === undefined ? null : Number(value);
}

function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
