/** The dialog that confirms a deletion. */

import { remove } from "../api.js";
import { h } from "../dom.js";
import { openDialog } from "./dialog.js";
import { checkboxField, createForm, field } from "./forms.js";
import { toast } from "./toast.js";

/** @import { Deletion, Workspace } from "../types.js" */
/** @typedef {{ put: (workspace: Workspace) => void }} Sink */

const USUAL = "CodeHub makes a last archive first, so you can undelete the workspace for some days.";
const FAILED = "The workspace has failed, so CodeHub cannot make a last archive. This cannot be undone.";
const WRONG_NAME = "This is not the name of the workspace.";

/**
 * @param {Workspace} workspace
 * @param {Sink} store
 * @param {() => void} [onDeleted]
 */
export function openDeleteDialog(workspace, store, onDeleted) {
  const failed = workspace.needs_person;
  const typed = h("input", { name: "typed", autocomplete: "off", autocapitalize: "none", spellcheck: "false",
    required: true });
  const purge = h("input", { type: "checkbox", name: "purge", value: "yes" });
  const form = createForm({ button: "Delete", tone: "danger", submit: async () => {
    toast((await deleteWorkspace(workspace, store, { purge: purge.checked || failed })).message);
    dialog.close();
    onDeleted?.();
  } },
  field(`Type “${workspace.name}” to confirm`, typed),
  failed ? null : checkboxField(purge, "Delete it for good, without a last archive"));
  const check = () => typed.setCustomValidity(typed.value.trim() === workspace.name ? "" : WRONG_NAME);
  typed.addEventListener("input", check);
  check();
  const dialog = openDialog(`Delete ${workspace.name}?`, h("p", {}, failed ? FAILED : USUAL), form);
  typed.focus();
}

/**
 * @param {Workspace} workspace
 * @param {Sink} store
 * @param {{ purge: boolean }} options
 */
export async function deleteWorkspace(workspace, store, { purge }) {
  /** @type {Deletion} */
  const deletion = await remove(`/workspaces/${workspace.id}${purge ? "?purge=true" : ""}`);
  store.put(deletion.workspace);
  return deletion;
}
