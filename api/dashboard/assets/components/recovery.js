/** An error explained: what happened, what is safe, what to do. */

import { post, remove } from "../api.js";
import { failureOf } from "../describe.js";
import { h, icon } from "../dom.js";
import { moment, size } from "../format.js";
import { ICONS } from "../icons.js";
import { CHOICES, FAILURES } from "../words.js";
import { openDialog } from "./dialog.js";
import { orOfferPlace } from "./running_limit.js";

export function openRecovery(workspace, store) {
  const dialog = openDialog(`${workspace.name}: ${lower(failureOf(workspace))}`,
    recoveryPanel(workspace, store, () => dialog.close()));
}

/** Take a deletion that failed back. */
export async function keep(workspace, store) {
  store.put(await post(`/workspaces/${workspace.id}/undelete`));
}

/** `done` is called once a choice was taken. */
export function recoveryPanel(workspace, store, done = () => {}) {
  const { error, recover: { choices, archives, undelete } } = workspace;
  const told = error.message && error.message !== error.explanation ? h("p", { class: "message" }, error.message) : null;
  const ask = (choice) => async (values) => {
    const request = values.archive ? { choice, archive: values.archive } : { choice };
    await orOfferPlace(async () => store.put(await post(`/workspaces/${workspace.id}/recover`, request)));
  };
  return h("div", { class: "recovery" },
    h("p", {}, FAILURES[error.reason]?.happened ?? error.explanation), told,
    h("div", { class: "safe" }, icon(ICONS.safe), h("p", {}, whatIsSafe(workspace))),
    h("h3", {}, "What to do"),
    choices.map(({ choice, meaning, consequence }) => way({
      name: choice, label: CHOICES[choice], words: `${capital(meaning)}. ${consequence ?? ""}`, consent: Boolean(consequence),
      more: choice === "restore_archive" ? archiveList(archives) : null, submit: ask(choice), done,
    })),
    undelete ? deletionWays(workspace, store, done) : null);
}

/** A deletion that failed can also be taken back, or done without an archive. */
function deletionWays(workspace, store, done) {
  return [
    way({ name: "keep", label: "Keep the workspace", words: "Take the deletion back. Nothing is deleted.", second: true,
      submit: () => keep(workspace, store), done }),
    way({ name: "purge", label: "Delete for good", words: "Delete it without a last archive. This cannot be taken back.", consent: true,
      submit: async () => store.put((await remove(`/workspaces/${workspace.id}?purge=true`)).workspace), done }),
  ];
}

/** One way out, in a form of its own; what gives up files is agreed to first. */
function way({ name, label, words, consent = false, second = consent, more = null, submit, done }) {
  const agreed = consent && h("input", { type: "checkbox", required: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const button = h("button", { class: second ? "button second" : "button", disabled: consent }, label);
  if (agreed) agreed.addEventListener("change", () => { button.disabled = !agreed.checked; });
  return h("form", { class: "choice", "data-choice": name, onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await submit(Object.fromEntries(new FormData(event.target)));
      done();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      button.disabled = false;
    }
  } }, h("p", {}, words), more, agreed && h("label", { class: "consent" }, agreed, "I understand what this means."), problem, button);
}

function archiveList(archives) {
  return h("fieldset", { class: "archive-choice" }, h("legend", {}, "Which archive?"), archives.map((each) =>
    h("label", {}, h("input", { type: "radio", name: "archive", value: each.archive_op_id, required: true, checked: archives.length === 1 }),
      h("span", {}, archiveInWords(each)))));
}

function archiveInWords({ created_at: made, size_bytes: count, verified_at: verified, current }) {
  return [made ? moment(made) : "time unknown", count === null ? "size unknown" : size(count),
    verified ? `verified ${moment(verified)}` : "not verified yet", current && "the current one"].filter(Boolean).join(" · ");
}

function whatIsSafe({ conditions, archive, error }) {
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

function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function lower(words) {
  return words.charAt(0).toLowerCase() + words.slice(1);
}
