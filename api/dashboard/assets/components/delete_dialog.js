/** Deleting: nobody does that with one careless click. */

import { remove } from "../api.js";
import { h } from "../dom.js";
import { openDialog } from "./dialog.js";
import { field, formOf } from "./forms.js";
import { toast } from "./toast.js";

/** Ask for the name, then delete; `deleted` is called with the answer. */
export function confirmDelete(workspace, store, deleted = () => {}) {
  // Without a last archive, because none can be made.
  const broken = workspace.needs_person;
  const typed = h("input", { name: "typed", autocomplete: "off", autocapitalize: "none", spellcheck: "false", required: true });
  const purge = h("input", { type: "checkbox", name: "purge", value: "yes" });
  const form = formOf({ button: "Delete", tone: "danger", submit: async () => {
    const answer = await remove(`/workspaces/${workspace.id}${purge.checked || broken ? "?purge=true" : ""}`);
    store.put(answer.workspace);
    dialog.close();
    toast(answer.message);
    deleted(answer);
  } },
  field(`Type “${workspace.name}” to confirm`, typed),
  broken ? null : h("label", { class: "consent" }, purge, "Make no last archive: it cannot be taken back."));
  const check = () => typed.setCustomValidity(typed.value.trim() === workspace.name ? "" : "That is not its name.");
  typed.addEventListener("input", check);
  check();
  const dialog = openDialog(`Delete ${workspace.name}?`, h("p", {}, broken ? BROKEN : USUAL), form);
  typed.focus();
}

const USUAL = "A last archive is made on the way. You can take the deletion back for some days.";
const BROKEN = "It failed, so no last archive can be made: this cannot be taken back.";
