/** Where you are signed in. */

import { get, remove } from "../api.js";
import { openDialog } from "../components/dialog.js";
import { checkboxField, createForm } from "../components/forms.js";
import { sectionWith } from "../components/section.js";
import { reportErrors, toast } from "../components/toast.js";
import { button, h, replaceChildren } from "../dom.js";
import { ago, moment } from "../format.js";
import { goToLogin } from "../routes.js";

/** @import { SessionItem, SessionList } from "../types.js" */

const BROWSERS = [
  ["Edg/", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"],
];
const SYSTEMS = [
  ["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac OS", "macOS"],
  ["CrOS", "ChromeOS"], ["Linux", "Linux"],
];

export class Sessions {
  constructor() {
    this.list = h("ul", { class: "plain-list" });
    const everywhere = button({ class: "button second small", onclick: openSignOutDialog },
      "Sign out everywhere");
    this.element = sectionWith("Where you are signed in", everywhere, this.list);
  }

  async load() {
    /** @type {SessionList} */
    const { items } = await get("/sessions");
    replaceChildren(this.list, items.map((session) => this.item(session)));
  }

  /** @param {SessionItem} session */
  item(session) {
    const device = deviceOf(session.user_agent);
    const seen = ago(session.last_seen_at ?? session.created_at);
    const control = session.current ? h("span", { class: "tag" }, "this one")
      : button({ class: "button second", "aria-label": `Sign out ${device}`,
        onclick: () => reportErrors(() => this.end(session)) }, "Sign out");
    return h("li", {}, h("div", {}, h("strong", { title: session.user_agent }, device),
      h("p", { class: "quiet" }, `Since ${moment(session.created_at)}. Last seen ${seen}.`)), control);
  }

  /** @param {SessionItem} session */
  async end(session) {
    await remove(`/sessions/${session.id}`);
    toast(`You are signed out of ${deviceOf(session.user_agent)}.`);
    await this.load();
  }
}

function openSignOutDialog() {
  const tokens = h("input", { type: "checkbox", name: "tokens", value: "true", checked: true });
  const form = createForm({ button: "Sign out everywhere", tone: "danger", submit: async (values) => {
    await remove(`/sessions?tokens=${values.tokens ?? "false"}`);
    goToLogin();
  } }, h("p", {}, "This signs you out in all browsers, including this one."),
  checkboxField(tokens, "Also revoke my personal tokens"));
  openDialog("Sign out everywhere", form);
}

/**
 * Return the browser and the system of a user agent.
 * @param {string | null} agent
 */
export function deviceOf(agent) {
  if (!agent) return "Unknown program";
  /** @param {string[][]} table */
  const find = (table) => table.find(([sign]) => agent.includes(sign))?.[1];
  const browser = find(BROWSERS), system = find(SYSTEMS);
  return browser ? `${browser}${system ? ` on ${system}` : ""}` : agent.split("/")[0];
}
