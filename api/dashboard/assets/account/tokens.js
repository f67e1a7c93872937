/** Personal tokens: shown once, revoked at any time. */

import { get, post, remove } from "../api.js";
import { h, icon, replace } from "../dom.js";
import { ago, moment } from "../format.js";
import { ICONS } from "../icons.js";
import { choose, field, formOf } from "../components/forms.js";
import { orTell, toast } from "../components/toast.js";
import { section } from "../components/section.js";

const LIFETIMES = [[7, "7 days"], [30, "30 days"], [90, "90 days"], [365, "A year"], ["", "Never"]];

export class Tokens {
  constructor() {
    this.list = h("ul", { class: "plain-list" });
    this.fresh = h("div", { role: "status" });
    const form = formOf({ button: "Make a token", submit: async ({ name, lifetime }, made) => {
      const token = await post("/tokens", { name, expires_in_days: lifetime ? Number(lifetime) : null });
      replace(this.fresh, shownOnce(token));
      made.reset();
      await this.load();
    } },
    field("Name", h("input", { name: "name", required: true, maxlength: 100, autocomplete: "off", placeholder: "laptop" }), { hint: "What it is for." }),
    field("Expires after", choose("lifetime", LIFETIMES, 90)));
    this.element = section("Personal tokens", h("p", { class: "quiet" }, "For programs and the codehub command. A token may do whatever you may."), this.list, this.fresh, form);
  }

  async load() {
    const { items } = await get("/tokens");
    replace(this.list, items.map((token) => this.item(token)));
  }

  item(token) {
    const expiry = token.expires_at ? `Expires ${moment(token.expires_at)}` : "Never expires";
    const button = h("button", { type: "button", class: "button second", "aria-label": `Revoke ${token.name}`,
      onclick: () => orTell(() => this.revoke(token)) }, "Revoke");
    return h("li", {}, h("div", {}, h("strong", {}, token.name), h("p", { class: "quiet" }, `${expiry}. Last used: ${ago(token.last_used_at)}.`)), button);
  }

  async revoke(token) {
    await remove(`/tokens/${token.id}`);
    toast(`${token.name} is revoked.`);
    await this.load();
  }
}

function shownOnce({ name, token }) {
  const text = h("input", { readonly: true, class: "secret", value: token, "aria-label": `The token ${name}`, onfocus: () => text.select() });
  const button = h("button", { type: "button", class: "button second", onclick: () => copy(text, button) }, icon(ICONS.copy), "Copy");
  return h("div", { class: "once" }, h("p", {}, h("strong", {}, "Copy it now: "), "it is not shown again."), h("div", { class: "beside" }, text, button));
}

/** The clipboard may be forbidden; the text is selected then, and Ctrl-C does it. */
async function copy(text, button) {
  text.select();
  try {
    await navigator.clipboard.writeText(text.value);
    replace(button, icon(ICONS.check), "Copied");
  } catch {
    toast("Press Ctrl-C to copy it.");
  }
}
