/** Where one is signed in. */

import { get, remove } from "../api.js";
import { h, replace } from "../dom.js";
import { ago, moment } from "../format.js";
import { orTell, toast } from "../components/toast.js";
import { section } from "../components/section.js";

const BROWSERS = [["Edg/", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"]];
const SYSTEMS = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac OS", "macOS"], ["CrOS", "ChromeOS"], ["Linux", "Linux"]];

export class Sessions {
  constructor() {
    this.list = h("ul", { class: "plain-list" });
    this.element = section("Where you are signed in", this.list);
  }

  async load() {
    const { items } = await get("/sessions");
    replace(this.list, items.map((session) => this.item(session)));
  }

  item(session) {
    const device = deviceOf(session.user_agent);
    const button = session.current ? h("span", { class: "tag" }, "this one")
      : h("button", { type: "button", class: "button second", "aria-label": `Sign out ${device}`, onclick: () => orTell(() => this.end(session)) }, "Sign out");
    return h("li", {}, h("div", {}, h("strong", { title: session.user_agent ?? "" }, device),
      h("p", { class: "quiet" }, `Since ${moment(session.created_at)}. Last seen ${ago(session.last_seen_at ?? session.created_at)}.`)), button);
  }

  async end(session) {
    await remove(`/sessions/${session.id}`);
    toast("Signed out there.");
    await this.load();
  }
}

function deviceOf(agent) {
  if (!agent) return "A program";
  const find = (table) => table.find(([sign]) => agent.includes(sign))?.[1];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  return browser ? `${browser}${system ? ` on ${system}` : ""}` : agent.split("/")[0];
}
