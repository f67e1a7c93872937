/** Cards with a title. */

import { h } from "../dom.js";

/** @import { Child } from "../dom.js" */

let count = 0;

/**
 * @param {string} title
 * @param {Child[]} content
 */
export function section(title, ...content) {
  return sectionWith(title, null, ...content);
}

/**
 * A section with a control next to its title.
 * @param {string} title
 * @param {HTMLElement | null} control
 * @param {Child[]} content
 */
export function sectionWith(title, control, ...content) {
  const id = `section-${(count += 1)}`;
  const heading = h("h2", { id }, title);
  const head = control ? h("div", { class: "section-head" }, heading, control) : heading;
  return h("section", { class: "card", "aria-labelledby": id }, head, ...content);
}
