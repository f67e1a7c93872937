/** A bar that shows a part of a whole; browsers' own cannot be drawn alike everywhere. */

import { h } from "../dom.js";

export function meter(label, value, most) {
  const part = h("span", {});
  part.style.width = `${(100 * Math.min(value, most)) / Math.max(most, 1e-9)}%`;
  return h("div", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": most, "aria-valuenow": Math.min(value, most) }, part);
}
