/** The observed conditions of a workspace. */

import { section } from "../components/section.js";
import { conditionSentence, conditionsToShow, diskSentence } from "../describe.js";
import { h, icon, replaceChildren, setText } from "../dom.js";
import { ago, exactTime, moment } from "../format.js";
import { ICONS } from "../icons.js";

/** @import { ConditionView, Workspace } from "../types.js" */

const SIGNS = {
  True: [ICONS.check, "good"],
  False: [ICONS.cross, "absent"],
  Unknown: [ICONS.unknown, "absent"],
};

export class Conditions {
  constructor() {
    this.key = "";
    this.list = h("ul", { class: "conditions" });
    this.checked = h("p", { class: "quiet" });
    this.disk = h("p", { class: "quiet" });
    this.element = section("Right now", this.list, this.disk, this.checked);
  }

  /** @param {Workspace} workspace */
  update(workspace) {
    const { conditions, observed_at: observed } = workspace;
    const key = JSON.stringify(conditions);
    if (key !== this.key) {
      replaceChildren(this.list, conditionsToShow(conditions).map((name) => item(name, conditions[name])));
    }
    this.key = key;
    setText(this.disk, diskSentence(workspace));
    replaceChildren(this.checked, observed
      ? ["Checked ", h("time", { datetime: observed, title: exactTime(observed) }, ago(observed)), "."]
      : "Not checked yet.");
  }
}

/**
 * @param {string} name
 * @param {ConditionView} condition
 */
function item(name, condition) {
  const wrong = name === "policy.healthy" && condition.status === "False";
  const [path, tone] = wrong ? [ICONS.warning, "bad"] : SIGNS[condition.status];
  const since = condition.last_transition_time;
  const title = since && `Since ${exactTime(since)}`;
  return h("li", { class: tone }, icon(path), h("span", {}, conditionSentence(name, condition)),
    since && h("time", { class: "quiet", datetime: since, title }, moment(since)));
}
