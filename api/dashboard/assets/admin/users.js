/** Accounts: add, change, disable. */

import { get, patch, post } from "../api.js";
import { now } from "../clock.js";
import { h, icon } from "../dom.js";
import { ahead, moment } from "../format.js";
import { ICONS } from "../icons.js";
import { openDialog } from "../components/dialog.js";
import { choose, field, formOf } from "../components/forms.js";
import { openMenu } from "../components/menu.js";
import { orTell, toast } from "../components/toast.js";
import { sectionWith } from "../components/section.js";

const ROLES = [["user", "User"], ["admin", "Administrator"]];

export class Users {
  constructor() {
    this.list = h("ul", { class: "plain-list" });
    this.more = h("button", { type: "button", class: "button second", hidden: true, onclick: () => orTell(() => this.load(this.cursor)) }, "More");
    const add = h("button", { type: "button", class: "button second small", onclick: () => this.add() }, icon(ICONS.plus), "Add");
    this.element = sectionWith("Users", add, this.list, this.more);
  }

  async load(cursor) {
    const { items, next_cursor: next } = await get(`/admin/users?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
    if (!cursor) this.list.replaceChildren();
    this.list.append(...items.map((user) => this.item(user)));
    this.cursor = next;
    this.more.hidden = !next;
  }

  item(user) {
    const locked = user.locked_until && Date.parse(user.locked_until) > now();
    const tags = [user.role === "admin" && "administrator", user.disabled_at && "disabled", locked && `locked until ${ahead(user.locked_until)}`].filter(Boolean);
    const more = h("button", { type: "button", class: "quiet-button more", "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": `Change ${user.username}`,
      onclick: () => openMenu(more, this.choices(user)) }, icon(ICONS.more));
    return h("li", { class: user.disabled_at ? "removed" : null },
      h("div", {}, h("strong", {}, user.username), tags.map((tag) => h("span", { class: "tag" }, tag)), h("p", { class: "quiet" }, `Since ${moment(user.created_at)}.`)), more);
  }

  choices(user) {
    const change = (form, words) => orTell(async () => {
      await patch(`/admin/users/${user.id}`, form);
      toast(words);
      await this.load();
    });
    const other = user.role === "admin" ? ["user", "Make a user"] : ["admin", "Make an administrator"];
    return [
      { label: other[1], icon: ICONS.person, act: () => change({ role: other[0] }, `${user.username} has a new role.`) },
      { label: "Set a password…", icon: ICONS.restore, act: () => this.setPassword(user) },
      user.disabled_at
        ? { label: "Enable", icon: ICONS.check, act: () => change({ disabled: false }, `${user.username} may sign in again.`) }
        : { label: "Disable", icon: ICONS.remove, tone: "danger", act: () => change({ disabled: true }, `${user.username} is signed out everywhere.`) },
    ];
  }

  add() {
    const name = h("input", { name: "username", required: true, maxlength: 64, autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
    const form = formOf({ button: "Add", submit: async (values) => {
      const user = await post("/admin/users", values);
      dialog.close();
      toast(`${user.username} may sign in now.`);
      await this.load();
    } }, field("User name", name), field("Password", newPassword(), { hint: "Whoever it is for should change it." }), field("Role", choose("role", ROLES, "user")));
    const dialog = openDialog("New user", form);
    name.focus();
  }

  setPassword(user) {
    const form = formOf({ button: "Set password", submit: async ({ password }) => {
      await patch(`/admin/users/${user.id}`, { password });
      dialog.close();
      toast(`${user.username} has a new password and is signed out everywhere.`);
    } }, field("New password", newPassword()));
    const dialog = openDialog(`A new password for ${user.username}`, form);
    form.elements.password.focus();
  }
}

function newPassword() {
  return h("input", { type: "password", name: "password", autocomplete: "new-password", required: true, maxlength: 1024 });
}
