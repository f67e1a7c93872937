/** Short messages that go away by themselves; also read aloud. */

import { h, icon } from "../dom.js";
import { ICONS } from "../icons.js";

const SHOWN_MS = 8000, ERROR_MS = 15000;

/** `action` is an element, such as a link, beside the words. */
export function toast(words, { tone = "plain", action } = {}) {
  const close = h("button", { type: "button", class: "quiet-button", "aria-label": "Dismiss" }, icon(ICONS.close));
  const message = h("div", { class: `toast ${tone}` }, h("p", {}, words), action, close);
  close.addEventListener("click", () => message.remove());
  const shelf = document.getElementById("toasts");
  shelf.append(message);
  while (shelf.children.length > 3) shelf.firstChild.remove();
  setTimeout(() => message.remove(), tone === "warn" ? ERROR_MS : SHOWN_MS);
}

/** Show what an action was refused with; whatever else went wrong is a mistake of ours and shows in the console. */
export async function orTell(action) {
  try {
    return await action();
  } catch (error) {
    toast(error.message, { tone: "warn" });
    if (error.problem === undefined) throw error;
    return undefined;
  }
}
