/** The menu behind a "more" button. */

import { button, h, icon } from "../dom.js";

/** @typedef {{ label: string, icon: string, tone?: string, action: () => unknown }} MenuItem */

/**
 * @param {HTMLElement} opener
 * @param {MenuItem[]} items
 */
export function openMenu(opener, items) {
  const label = opener.getAttribute("aria-label");
  const menu = h("div", { role: "menu", class: "menu", popover: "auto", "aria-label": label },
    items.map((item) => button({ role: "menuitem", tabindex: "-1", class: item.tone,
      onclick: () => { menu.hidePopover(); item.action(); } }, icon(item.icon), item.label)));
  menu.addEventListener("keydown", (event) => moveFocus(menu, event));
  menu.addEventListener("toggle", (event) => {
    const isOpen = /** @type {ToggleEvent} */ (event).newState === "open";
    opener.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) return;
    if (menu.contains(document.activeElement) || document.activeElement === document.body) opener.focus();
    menu.remove();
  });
  document.body.append(menu);
  menu.showPopover();
  placeNextTo(menu, opener);
  menuItems(menu)[0].focus();
}

/** @param {HTMLElement} menu */
function menuItems(menu) {
  return /** @type {HTMLElement[]} */ ([...menu.children]);
}

/**
 * @param {HTMLElement} menu
 * @param {HTMLElement} opener
 */
function placeNextTo(menu, opener) {
  const { top, right, bottom } = opener.getBoundingClientRect();
  const fitsBelow = bottom + 4 + menu.offsetHeight < innerHeight;
  menu.style.top = `${fitsBelow ? bottom + 4 : Math.max(4, top - 4 - menu.offsetHeight)}px`;
  menu.style.left = `${Math.max(8, right - menu.offsetWidth)}px`;
}

/**
 * @param {HTMLElement} menu
 * @param {KeyboardEvent} event
 */
function moveFocus(menu, event) {
  const items = menuItems(menu);
  const current = items.findIndex((item) => item === document.activeElement);
  /** @type {Record<string, number>} */
  const targets = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: -1 };
  const target = targets[event.key];
  if (event.key === "Tab") menu.hidePopover();
  if (target === undefined) return;
  event.preventDefault();
  items.at(target % items.length)?.focus();
}
