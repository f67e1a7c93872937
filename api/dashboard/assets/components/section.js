/** A titled part of a page. */

import { h } from "../dom.js";

let count = 0;

export function section(title, ...content) {
  const id = `section-${(count += 1)}`;
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), content);
}

/** With something beside the title, such as a button. */
export function sectionWith(title, beside, ...content) {
  const id = `section-${(count += 1)}`;
  return h("section", { class: "card", "aria-labelledby": id },
    h("div", { class: "section-head" }, h("h2", { id }, title), beside), content);
}
