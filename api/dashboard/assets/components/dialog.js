/** Modal dialogs on the browser's own element: it keeps the focus inside and gives it back. */

import { h, icon } from "../dom.js";
import { ICONS } from "../icons.js";

let count = 0;

/** Opens at once; returns the dialog, which removes itself once closed. */
export function openDialog(title, ...content) {
  const name = `dialog-${(count += 1)}`;
  const close = h("button", { type: "button", class: "quiet-button close", "aria-label": "Close" }, icon(ICONS.close));
  const dialog = h("dialog", { "aria-labelledby": name },
    h("header", {}, h("h2", { id: name }, title), close), content);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  // A click on what is behind closes it, unless it began inside: somebody may be selecting a text.
  dialog.addEventListener("mousedown", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
