/** Modal dialogs. The browser's own element keeps the focus inside and gives it back. */

import { button, h, icon } from "../dom.js";
import { ICONS } from "../icons.js";

/** @import { Child } from "../dom.js" */

let count = 0;

/**
 * Open a dialog; it removes itself when it is closed.
 * @param {string} title
 * @param {Child[]} content
 */
export function openDialog(title, ...content) {
  const id = `dialog-${(count += 1)}`;
  const close = button({ class: "quiet-button close", "aria-label": "Close" },
    icon(ICONS.close));
  const header = h("header", {}, h("h2", { id }, title), close);
  const dialog = h("dialog", { "aria-labelledby": id }, header, ...content);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  // Not on click: one that begins inside and ends outside selects text.
  dialog.addEventListener("mousedown", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
