/** The settings of a workspace, and the facts that never change. */

import { patch } from "../api.js";
import { createForm, field } from "../components/forms.js";
import { idleTimeFields, readIdleTimes } from "../components/idle_times.js";
import { section } from "../components/section.js";
import { toast } from "../components/toast.js";
import { h, replaceChildren } from "../dom.js";
import { exactTime } from "../format.js";
import { IDES } from "../words.js";

/** @import { Store } from "../store.js" */
/** @import { Workspace } from "../types.js" */

export class Settings {
  /**
   * @param {string} id
   * @param {Store} store
   */
  constructor(id, store) {
    this.id = id;
    this.store = store;
    this.key = "";
    this.body = h("div");
    this.element = section("Settings", this.body);
  }

  /**
   * Show the current values, but never while somebody is typing here.
   * @param {Workspace} workspace
   */
  update(workspace) {
    const key = JSON.stringify([workspace.name, workspace.description, idleTimes(workspace)]);
    if (key === this.key || this.body.contains(document.activeElement)) return;
    this.key = key;
    replaceChildren(this.body, this.form(workspace), facts(workspace));
  }

  /** @param {Workspace} workspace */
  form(workspace) {
    const name = h("input", { name: "name", required: true, maxlength: 100, autocomplete: "off",
      value: workspace.name });
    const description = h("input", { name: "description", maxlength: 1000, autocomplete: "off",
      value: workspace.description ?? "" });
    return createForm({ button: "Save", tone: "second", submit: async (values, form) => {
      const saved = await patch(`/workspaces/${this.id}`, {
        name: values.name, description: values.description || null, ...readIdleTimes(values),
      });
      form.querySelector("button")?.blur();
      this.store.put(saved);
      toast("Saved.");
    } }, field("Name", name), field("Description", description), idleTimeFields(idleTimes(workspace)));
  }
}

/** @param {Workspace} workspace */
function idleTimes(workspace) {
  return {
    standby: { chosen: workspace.standby_ttl_seconds, inherited: workspace.effective_standby_ttl_seconds },
    archive: { chosen: workspace.archive_ttl_seconds, inherited: workspace.effective_archive_ttl_seconds },
  };
}

/** @param {Workspace} workspace */
function facts({ id, image_ref: image, owner, created_at: created }) {
  const rows = [
    ["IDE", IDES[image] ?? image], ["Owner", owner.username], ["Created", exactTime(created)], ["Id", id],
  ];
  return h("dl", { class: "facts-list" },
    rows.map(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}
