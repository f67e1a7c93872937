/** Personal tokens. Each is shown once and can be revoked at any time. */

import { get, post, remove } from "../api.js";
import { createForm, field, select } from "../components/forms.js";
import { section } from "../components/section.js";
import { reportErrors, toast } from "../components/toast.js";
import { button, h, icon, replaceChildren } from "../dom.js";
import { ago, moment } from "../format.js";
import { ICONS } from "../icons.js";

/** @import { CreatedToken, TokenItem, TokenList, WorkspacePage } from "../types.js" */

/** @type {[string | number, string][]} */
const LIFETIMES = [[7, "7 days"], [30, "30 days"], [90, "90 days"], [365, "A year"], ["", "Never"]];

/** @type {[string, string][]} */
const SCOPES = [["read", "Read"], ["workspaces", "Read, change and open workspaces"]];
/** @type {[string, string]} */
const ADMIN_SCOPE = ["admin", "Everything, administration included"];

export class Tokens {
  /** @param {boolean} isAdmin */
  constructor(isAdmin) {
    this.workspace = select("workspace", [["", "All workspaces"]], "");
    const scope = select("scope", isAdmin ? [...SCOPES, ADMIN_SCOPE] : SCOPES, "workspaces");
    // An administrator's token is not limited to a workspace.
    scope.addEventListener("change", () => {
      this.workspace.disabled = scope.value === "admin";
      if (this.workspace.disabled) this.workspace.value = "";
    });
    /** @type {Map<string, string>} */
    this.names = new Map();
    this.list = h("ul", { class: "plain-list" });
    this.created = h("div", { role: "status" });
    const name = h("input", { name: "name", required: true, maxlength: 100, autocomplete: "off",
      placeholder: "laptop" });
    const form = createForm({ button: "Create token", submit: async (values, sent) => {
      const days = values.lifetime ? Number(values.lifetime) : null;
      const scopes = values.scope === "admin" ? ["workspaces", "admin"] : [values.scope];
      const workspaces = values.workspace ? [values.workspace] : null;
      const token = await post("/tokens", { name: values.name, expires_in_days: days, scopes, workspaces });
      replaceChildren(this.created, createdToken(token));
      sent.reset();
      this.workspace.disabled = false;
      await this.load();
    } }, field("Name", name, "What it is for."), field("May", scope), field("For", this.workspace),
    field("Expires after", select("lifetime", LIFETIMES, 90)));
    const hint = h("p", { class: "quiet" },
      "For programs and the codehub command. Give each token only what it needs.");
    this.element = section("Personal tokens", hint, this.list, this.created, form);
  }

  async load() {
    /** @type {TokenList} */
    const { items } = await get("/tokens");
    replaceChildren(this.list, items.map((token) => this.item(token)));
  }

  async loadWorkspaces() {
    /** @type {WorkspacePage} */
    const { items } = await get("/workspaces?limit=200");
    for (const { id, name } of items) {
      this.names.set(id, name);
      this.workspace.append(h("option", { value: id }, `Only ${name}`));
    }
  }

  /** @param {TokenItem} token */
  item(token) {
    const expiry = token.expires_at ? `Expires ${moment(token.expires_at)}` : "Never expires";
    const control = button({ class: "button second", "aria-label": `Revoke ${token.name}`,
      onclick: () => reportErrors(() => this.revoke(token)) }, "Revoke");
    return h("li", {}, h("div", {}, h("strong", {}, token.name),
      h("p", { class: "quiet" }, `${limitsOf(token, this.names)} ${expiry}. `
        + `Last used: ${ago(token.last_used_at)}.`)), control);
  }

  /** @param {TokenItem} token */
  async revoke(token) {
    await remove(`/tokens/${token.id}`);
    toast(`${token.name} is revoked.`);
    await this.load();
  }
}

/**
 * Describe what a token may do.
 * @param {Pick<TokenItem, "scopes" | "workspaces">} token
 * @param {Map<string, string>} names of workspaces, by id
 */
export function limitsOf({ scopes, workspaces }, names) {
  if (!scopes) return "May do everything that you may.";
  const may = [...SCOPES, ADMIN_SCOPE].findLast(([scope]) => scopes.some((each) => each === scope));
  const only = workspaces?.map((id) => names.get(id) ?? "a deleted workspace").join(", ");
  return `${may?.[1]}${only ? `, only ${only}` : ""}.`;
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
