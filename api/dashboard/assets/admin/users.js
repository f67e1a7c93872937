/** Accounts: add, change, disable. */

import { get, patch, post, remove } from "../api.js";
import { now } from "../clock.js";
import { openDialog } from "../components/dialog.js";
import { createForm, field, select } from "../components/forms.js";
import { openMenu } from "../components/menu.js";
import { sectionWith } from "../components/section.js";
import { reportErrors, toast } from "../components/toast.js";
import { button, h, icon } from "../dom.js";
import { moment } from "../format.js";
import { ICONS } from "../icons.js";

/** @import { UserItem, UserPage } from "../types.js" */
/** @import { MenuItem } from "../components/menu.js" */

/** @type {[string, string][]} */
const ROLES = [["user", "User"], ["admin", "Administrator"]];

export class Users {
  constructor() {
    /** @type {string | null} */
    this.cursor = null;
    this.list = h("ul", { class: "plain-list" });
    this.more = button({ class: "button second", hidden: true,
      onclick: () => reportErrors(() => this.load(this.cursor)) }, "More");
    const add = button({ class: "button second small", onclick: () => this.openAddDialog() },
      icon(ICONS.plus), "Add");
    this.element = sectionWith("Users", add, this.list, this.more);
  }

  /** @param {string | null} [cursor] */
  async load(cursor) {
    const query = new URLSearchParams({ limit: "100", ...(cursor ? { cursor } : {}) });
    /** @type {UserPage} */
    const { items, next_cursor: next } = await get(`/admin/users?${query}`);
    if (!cursor) this.list.replaceChildren();
    this.list.append(...items.map((user) => this.item(user)));
    this.cursor = next;
    this.more.hidden = !next;
  }

  /** @param {UserItem} user */
  item(user) {
    const more = button({ class: "quiet-button more", "aria-haspopup": "menu",
      "aria-expanded": "false", "aria-label": `Change ${user.username}`,
      onclick: () => openMenu(more, this.menuItems(user)) }, icon(ICONS.more));
    const tags = tagsOf(user).map((tag) => h("span", { class: "tag" }, tag));
    return h("li", { class: user.disabled_at && "removed" },
      h("div", {}, h("strong", {}, user.username), tags,
        h("p", { class: "quiet" }, `Since ${moment(user.created_at)}.`)), more);
  }

  /**
   * @param {UserItem} user
   * @returns {MenuItem[]}
   */
  menuItems(user) {
    const { id, username, role, disabled_at: disabled } = user;
    /** @type {(fields: object, text: string) => Promise<void>} */
    const change = (fields, text) => reportErrors(async () => {
      await patch(`/admin/users/${id}`, fields);
      toast(text);
      await this.load();
    });
    const isAdmin = role === "admin";
    return [
      { label: isAdmin ? "Make a user" : "Make an administrator", icon: ICONS.person,
        action: () => change({ role: isAdmin ? "user" : "admin" },
          isAdmin ? `${username} is a user now.` : `${username} is an administrator now.`) },
      { label: "Set a password…", icon: ICONS.restore, action: () => openPasswordDialog(user) },
      { label: "Remove the authenticator app", icon: ICONS.person,
        action: () => reportErrors(async () => {
          await remove(`/admin/users/${id}/authenticator`);
          toast(`${username} signs in with the password alone now.`);
        }) },
      disabled
        ? { label: "Enable", icon: ICONS.check,
          action: () => change({ disabled: false }, `${username} can sign in again.`) }
        : { label: "Disable", icon: ICONS.remove, tone: "danger",
          action: () => change({ disabled: true }, `${username} is disabled and signed out everywhere.`) },
    ];
  }

  openAddDialog() {
    const name = h("input", { name: "username", required: true, maxlength: 64, autocomplete: "off",
      autocapitalize: "none", spellcheck: "false" });
    const form = createForm({ button: "Add", submit: async (values) => {
      const user = await post("/admin/users", values);
      dialog.close();
      toast(`${user.username} can sign in now.`);
      await this.load();
    } },
    field("User name", name), field("Password", newPassword(), "The new user should change it."),
    field("Role", select("role", ROLES, "user")));
    const dialog = openDialog("New user", form);
    name.focus();
  }
}

/** @param {UserItem} user */
function openPasswordDialog({ id, username }) {
  const input = newPassword();
  const form = createForm({ button: "Set password", submit: async ({ password }) => {
    await patch(`/admin/users/${id}`, { password });
    dialog.close();
    toast(`${username} has a new password, is signed out everywhere and has no tokens.`);
  } }, field("New password", input, "It ends all sessions and revokes all tokens."));
  const dialog = openDialog(`New password for ${username}`, form);
  input.focus();
}

/** @param {UserItem} user */
function tagsOf({ role, disabled_at: disabled, locked_until: locked }) {
  const tags = [];
  if (role === "admin") tags.push("administrator");
  if (disabled) tags.push("disabled");
  if (locked && Date.parse(locked) > now()) tags.push(`locked until ${moment(locked)}`);
  return tags;
}

function newPassword() {
  return h("input", { type: "password", name: "password", autocomplete: "new-password", required: true,
    maxlength: 1024 });
}
