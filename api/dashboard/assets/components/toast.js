/** Short messages that disappear by themselves. Screen readers announce them. */

import { ApiError } from "../api.js";
import { button, element, h, icon } from "../dom.js";
import { ICONS } from "../icons.js";

const SHOWN_MS = 8000, ERROR_MS = 15000, MOST = 3;

/**
 * @param {string} text
 * @param {{ tone?: string, link?: HTMLElement }} [options]
 */
export function toast(text, { tone = "plain", link } = {}) {
  const close = button({ class: "quiet-button", "aria-label": "Dismiss" }, icon(ICONS.close));
  const message = h("div", { class: `toast ${tone}` }, h("p", {}, text), link, close);
  close.addEventListener("click", () => message.remove());
  const shelf = element("toasts");
  shelf.append(message);
  while (shelf.children.length > MOST) shelf.firstChild?.remove();
  setTimeout(() => message.remove(), tone === "warn" ? ERROR_MS : SHOWN_MS);
}

/**
 * Run an action and show its error in a toast. A bug also reaches the console.
 * @param {() => unknown} action
 */
export async function reportErrors(action) {
  try {
    await action();
  } catch (error) {
    if (error instanceof Error) toast(error.message, { tone: "warn" });
    if (!(error instanceof ApiError)) throw error;
  }
}
