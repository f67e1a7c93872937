/** An error explained: what happened, what is safe, what to do. */

import { post } from "../api.js";
import { h, icon } from "../dom.js";
import { moment, size } from "../format.js";
import { ICONS } from "../icons.js";
import { CHOICES, FAILURES } from "../words.js";
import { openDialog } from "./dialog.js";
import { orOfferPlace } from "./limit.js";

export function openRecovery(workspace, store) {
  const dialog = openDialog(`${workspace.name}: ${headline(workspace).toLowerCase()}`,
    recoveryPanel(workspace, store, () => dialog.close()));
}

export function headline(workspace) {
  return FAILURES[workspace.error.reason] ?? "Something went wrong";
}

/** `done` is called once a choice was taken. */
export function recoveryPanel(workspace, store, done = () => {}) {
  const { error } = workspace;
  const told = error.message && error.message !== error.explanation ? h("p", { class: "message" }, error.message) : null;
  return h("div", { class: "recovery" },
    h("p", {}, firstSentence(error.explanation)), told,
    h("div", { class: "safe" }, icon(ICONS.safe), h("p", {}, whatIsSafe(workspace))),
    error.recover_choices.length ? h("h3", {}, "What to do") : null,
    error.recover_choices.map((name) => choice(name, workspace, store, done)));
}

function choice(name, workspace, store, done) {
  const { label, meaning, consent } = CHOICES[name];
  const agreed = consent && h("input", { type: "checkbox", required: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const button = h("button", { class: consent ? "button second" : "button", disabled: Boolean(consent) }, label);
  agreed?.addEventListener("change", () => { button.disabled = !agreed.checked; });
  return h("form", { class: "choice", "data-choice": name, onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await orOfferPlace(async () => store.put(await post(`/workspaces/${workspace.id}/recover`, { choice: name })));
      done();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      button.disabled = false;
    }
  } }, h("p", {}, meaning), agreed && h("label", { class: "consent" }, agreed, consent), problem, button);
}

function whatIsSafe({ conditions, archive, error, deleted_at: deleted }) {
  if (deleted) return "It was being deleted when this happened.";
  const disk = conditions["storage.volume_ready"];
  if (disk?.status === "True") return "Your files are on the workspace’s disk.";
  const gone = conditions["storage.archive_ready"]?.reason === "Gone";
  if (disk?.status === "Unknown" || gone || !archive?.created_at || archive.size_bytes === null) {
    return "Nothing was deleted, and nothing will be before you have decided.";
  }
  const which = `the archive of ${moment(archive.created_at)} (${size(archive.size_bytes)})`;
  if (error.reason === "DataLost") return `What you had by then is still in ${which}.`;
  if (error.reason === "ArchiveCorrupted") return `Nothing was deleted: ${which} is kept as it is.`;
  return `Your files are safe in ${which}.`;
}

// The others speak to callers of the API.
function firstSentence(words) {
  return `${words.split(". ")[0].replace(/\.$/, "")}.`;
}
