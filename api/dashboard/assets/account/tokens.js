/** Personal tokens. Each is shown once and can be revoked at any time. */

import { get, post, remove } from "../api.js";
import { createForm, field, select } from "../components/forms.js";
import { section } from "../components/section.js";
import { reportErrors, toast } from "../components/toast.js";
import { button, h, icon, replaceChildren } from "../dom.js";
import { ago, moment } from "../format.js";
import { ICONS } from "../icons.js";

/** @import { CreatedToken, TokenItem, TokenList } from "../types.js" */

/** @type {[string | number, string][]} */
const LIFETIMES = [[7, "7 days"], [30, "30 days"], [90, "90 days"], [365, "A year"], ["", "Never"]];

export class Tokens {
  constructor() {
    this.list = h("ul", { class: "plain-list" });
    this.created = h("div", { role: "status" });
    const name = h("input", { name: "name", required: true, maxlength: 100, autocomplete: "off",
      placeholder: "laptop" });
    const form = createForm({ button: "Create token", submit: async (values, sent) => {
      const days = values.lifetime ? Number(values.lifetime) : null;
      const token = await post("/tokens", { name: values.name, expires_in_days: days });
      replaceChildren(this.created, createdToken(token));
      sent.reset();
      await this.load();
    } }, field("Name", name, "What it is for."), field("Expires after", select("lifetime", LIFETIMES, 90)));
    const hint = h("p", { class: "quiet" },
      "For programs and the codehub command. A token can do everything that you can.");
    this.element = section("Personal tokens", hint, this.list, this.created, form);
  }

  async load() {
    /** @type {TokenList} */
    const { items } = await get("/tokens");
    replaceChildren(this.list, items.map((token) => this.item(token)));
  }

  /** @param {TokenItem} token */
  item(token) {
    const expiry = token.expires_at ? `Expires ${moment(token.expires_at)}` : "Never expires";
    const control = button({ class: "button second", "aria-label": `Revoke ${token.name}`,
      onclick: () => reportErrors(() => this.revoke(token)) }, "Revoke");
    return h("li", {}, h("div", {}, h("strong", {}, token.name),
      h("p", { class: "quiet" }, `${expiry}. Last used: ${ago(token.last_used_at)}.`)), control);
  }

  /** @param {TokenItem} token */
  async revoke(token) {
    await remove(`/tokens/${token.id}`);
    toast(`${token.name} is revoked.`);
    await this.load();
  }
}

/** @param {CreatedToken} token */
function createdToken({ name, token }) {
  const label = `The token ${name}`;
  const text = h("input", { readonly: true, class: "secret", value: token, "aria-label": label });
  text.addEventListener("focus", () => text.select());
  const control = button({ class: "button second", onclick: () => copy(text, control) },
    icon(ICONS.copy), "Copy");
  return h("div", { class: "once" },
    h("p", {}, h("strong", {}, "Copy it now. "), "CodeHub does not show it again."),
    h("div", { class: "beside" }, text, control));
}

/**
 * Copy the text. If the browser forbids that, it stays selected for Ctrl-C.
 * @param {HTMLInputElement} text
 * @param {HTMLElement} control
 */
async function copy(text, control) {
  text.select();
  try {
    await navigator.clipboard.writeText(text.value);
    replaceChildren(control, icon(ICONS.check), "Copied");
  } catch {
    toast("Press Ctrl-C to copy it.");
  }
}
