/** What a workspace may connect to, and what it connected to. */

import { get, patch } from "../api.js";
import { createForm, field, select } from "../components/forms.js";
import { section } from "../components/section.js";
import { toast } from "../components/toast.js";
import { h, replaceChildren, setVisible } from "../dom.js";
import { exactTime, moment } from "../format.js";
import { ALWAYS_REFUSED, NOT_ENFORCED } from "../words.js";

/** @import { NetworkLog, NetworkLogItem, NetworkPolicy, Policy } from "../types.js" */

const SHOWN = 20;
const NONE = "No connections in the last seven days.";
/** @type {[string, string][]} */
const MODES = [
  ["", "Default"], ["open", "All public names"], ["allow-list", "Only these names"], ["none", "Nothing"],
];

export class Network {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.policy = h("div");
    this.list = h("ul", { class: "plain-list" });
    this.heading = h("h3", {}, "Connections");
    this.element = section("Network", this.policy, this.heading, this.list);
  }

  async load() {
    /** @type {[NetworkPolicy, NetworkLog]} */
    const [policy, { items }] = await Promise.all(
      [get(`/workspaces/${this.id}/network`), get(`/workspaces/${this.id}/network/log`)]);
    this.show(policy);
    for (const each of [this.heading, this.list]) setVisible(each, policy.enforced);
    const shown = items.slice(0, SHOWN);
    replaceChildren(this.list, shown.length ? shown.map(item) : h("li", { class: "quiet" }, NONE));
  }

  /**
   * Show the policy, but not while the user is editing it.
   * @param {NetworkPolicy} policy
   */
  show(policy) {
    if (this.policy.contains(document.activeElement)) return;
    if (!policy.enforced) {
      replaceChildren(this.policy, h("p", {}, NOT_ENFORCED));
      return;
    }
    const lines = policy.effective.map((each) => h("p", {}, describe(each)));
    replaceChildren(this.policy, lines, h("p", { class: "quiet" }, ALWAYS_REFUSED), this.form(policy));
  }

  /** @param {NetworkPolicy} policy */
  form({ choice }) {
    const names = h("textarea", { name: "names", rows: 3, autocomplete: "off", spellcheck: false });
    names.value = choice?.names.join("\n") ?? "";
    const listed = field("Names", names, "One per line; *.example.org means all names below it.");
    const mode = select("mode", MODES, choice?.mode ?? "");
    const showNames = () => setVisible(listed, mode.value === "allow-list");
    mode.addEventListener("change", showNames);
    showNames();
    return createForm({ button: "Save", tone: "second", submit: async (values, form) => {
      const chosen = values.mode === "allow-list" ? values.names.split(/[\s,]+/).filter(Boolean) : [];
      const wanted = { mode: values.mode || null, names: chosen };
      const saved = await patch(`/workspaces/${this.id}/network`, wanted);
      form.querySelector("button")?.blur();
      this.show(saved);
      toast("Saved. It applies within seconds.");
    } }, field("May connect to", mode), listed);
  }
}

/** @param {Policy} policy */
function describe({ mode, names }) {
  if (mode === "open") return "Connects to all public names.";
  if (mode === "none") return "Connects to nothing.";
  return names.length ? `Connects only to ${names.join(", ")}.` : "Connects to nothing: the list is empty.";
}

/** @param {NetworkLogItem} entry */
function item({ hour, name, port, verdict, count }) {
  const time = h("time", { datetime: hour, title: exactTime(hour) }, moment(hour));
  const where = name === "*" ? "other names" : `${name}:${port}`;
  return h("li", {},
    h("div", {}, h("p", {}, where), h("p", { class: "quiet" }, time, ` · ${count}×`)),
    h("span", { class: "tag" }, verdict));
}
