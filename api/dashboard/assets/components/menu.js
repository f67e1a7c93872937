/** One menu for all of a page's "more" buttons: made when it is opened, above everything else. */

import { h, icon } from "../dom.js";

/** `items` are `{ label, icon, tone, act }`. */
export function openMenu(button, items) {
  const menu = h("div", { role: "menu", class: "menu", popover: "auto", "aria-label": button.getAttribute("aria-label") },
    items.map((item) => h("button", { type: "button", role: "menuitem", tabindex: "-1", class: item.tone,
      onclick: () => { menu.hidePopover(); item.act(); } }, icon(item.icon), item.label)));
  menu.addEventListener("keydown", (event) => move(menu, event));
  menu.addEventListener("toggle", ({ newState }) => {
    button.setAttribute("aria-expanded", newState === "open");
    if (newState === "open") return;
    if (menu.contains(document.activeElement) || document.activeElement === document.body) button.focus();
    menu.remove();
  });
  document.body.append(menu);
  menu.showPopover();
  put(menu, button);
  menu.firstChild.focus();
}

function put(menu, button) {
  const there = button.getBoundingClientRect();
  const below = there.bottom + 4 + menu.offsetHeight < innerHeight;
  menu.style.top = `${below ? there.bottom + 4 : Math.max(4, there.top - 4 - menu.offsetHeight)}px`;
  menu.style.left = `${Math.max(8, there.right - menu.offsetWidth)}px`;
}

function move(menu, event) {
  const items = [...menu.children];
  const here = items.indexOf(document.activeElement);
  const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: -1 }[event.key];
  if (event.key === "Tab") menu.hidePopover();
  if (to === undefined) return;
  event.preventDefault();
  items.at(to % items.length).focus();
}
