/** The conditions in plain words. */

import { conditionSentence, conditionsToShow } from "../describe.js";
import { h, icon, replace } from "../dom.js";
import { ago, exactly, moment } from "../format.js";
import { ICONS } from "../icons.js";
import { section } from "../components/section.js";

const SIGNS = { True: [ICONS.check, "good"], False: [ICONS.cross, "absent"], Unknown: [ICONS.unknown, "absent"] };

export class Conditions {
  constructor() {
    this.list = h("ul", { class: "conditions" });
    this.seen = h("p", { class: "quiet" });
    this.element = section("Right now", this.list, this.seen);
  }

  update({ conditions, observed_at: observed }) {
    const key = JSON.stringify(conditions);
    if (key !== this.key) replace(this.list, conditionsToShow(conditions).map((name) => item(name, conditions[name])));
    this.key = key;
    replace(this.seen, observed ? ["Looked at ", h("time", { datetime: observed, title: exactly(observed) }, ago(observed)), "."] : "Not looked at yet.");
  }
}

function item(name, condition) {
  const wrong = name === "policy.healthy" && condition.status === "False";
  const [path, tone] = wrong ? [ICONS.warning, "bad"] : SIGNS[condition.status];
  const since = condition.last_transition_time;
  return h("li", { class: tone, title: `${name} = ${condition.status} (${condition.reason}): ${condition.message}` },
    icon(path), h("span", {}, conditionSentence(name, condition)),
    since && h("time", { class: "quiet", datetime: since, title: `Since ${exactly(since)}` }, moment(since)));
}
