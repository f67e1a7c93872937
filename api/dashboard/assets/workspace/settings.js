/** What its owner may change, and what is as it is. */

import { patch } from "../api.js";
import { h, replace } from "../dom.js";
import { exactly } from "../format.js";
import { field, formOf } from "../components/forms.js";
import { toast } from "../components/toast.js";
import { readTtl, ttlChoice } from "../components/idle_times.js";
import { section } from "../components/section.js";

const SHOWN = ["name", "description", "standby_ttl_seconds", "archive_ttl_seconds", "effective_standby_ttl_seconds", "effective_archive_ttl_seconds"];

export class Settings {
  constructor(id, store) {
    Object.assign(this, { id, store });
    this.body = h("div", {});
    this.element = section("Settings", this.body);
  }

  /** Whoever is typing here is left alone. */
  update(workspace) {
    const key = JSON.stringify(SHOWN.map((name) => workspace[name]));
    if (key === this.key || this.body.contains(document.activeElement)) return;
    this.key = key;
    replace(this.body, this.form(workspace), facts(workspace));
  }

  form(workspace) {
    return formOf({ button: "Save", tone: "second", submit: async (values, form) => {
      const saved = await patch(`/workspaces/${this.id}`, {
        name: values.name,
        description: values.description || null,
        standby_ttl_seconds: readTtl(values.standby_ttl_seconds),
        archive_ttl_seconds: readTtl(values.archive_ttl_seconds),
      });
      form.querySelector("button").blur();
      this.store.put(saved);
      toast("Saved.");
    } },
    field("Name", h("input", { name: "name", required: true, maxlength: 100, autocomplete: "off", value: workspace.name })),
    field("Description", h("input", { name: "description", maxlength: 1000, autocomplete: "off", value: workspace.description ?? "" })),
    ttlChoice("standby", workspace.standby_ttl_seconds, workspace.effective_standby_ttl_seconds),
    ttlChoice("archive", workspace.archive_ttl_seconds, workspace.effective_archive_ttl_seconds));
  }
}

function facts(workspace) {
  const rows = [["Editor", workspace.image_ref], ["Owner", workspace.owner.username], ["Runs on", `${workspace.instance_backend}, ${workspace.storage_backend}`],
    ["Created", exactly(workspace.created_at)], ["Id", workspace.id]];
  return h("dl", { class: "facts-list" }, rows.map(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}
