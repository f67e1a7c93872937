/** What happened to a failed workspace, where its files are, and what to do. */

import { messageOf, post } from "../api.js";
import { archiveSize, archiveVerification, failureOf } from "../describe.js";
import { h, icon, setText, setVisible } from "../dom.js";
import { capitalize, moment, size } from "../format.js";
import { ICONS } from "../icons.js";
import { CHOICES, FAILURES, OUT_OF_REACH } from "../words.js";
import { deleteWorkspace } from "./delete_dialog.js";
import { openDialog } from "./dialog.js";
import { checkboxField, valuesOf } from "./forms.js";
import { orStopAnother } from "./running_limit.js";

/** @import { ArchiveOption, RecoverChoice, Workspace } from "../types.js" */
/** @import { Sink } from "./delete_dialog.js" */
/**
 * @typedef {object} Choice
 * @property {string} name
 * @property {string} label
 * @property {string} text
 * @property {boolean} [needsConsent] whether it gives up files
 * @property {boolean} [secondary]
 * @property {HTMLElement | null} [more]
 * @property {(values: Record<string, string>) => Promise<unknown>} submit
 */

/**
 * @param {Workspace} workspace
 * @param {Sink} store
 */
export function openRecoveryDialog(workspace, store) {
  const panel = recoveryPanel(workspace, store, () => dialog.close());
  const dialog = openDialog(`${workspace.name}: ${failureOf(workspace)}`, panel);
}

/**
 * @param {Workspace} workspace
 * @param {Sink} store
 */
export async function undelete(workspace, store) {
  store.put(await post(`/workspaces/${workspace.id}/undelete`));
}

/**
 * @param {Workspace} workspace
 * @param {Sink} store
 * @param {() => void} [onDone]
 */
export function recoveryPanel(workspace, store, onDone = () => {}) {
  const { error, out_of_reach: lost, recover } = workspace;
  const happened = lost ? OUT_OF_REACH.happened : FAILURES[error?.reason ?? ""]?.happened;
  const details = lost?.message ?? (error?.message !== error?.explanation ? error?.message : null);
  const choices = recoverChoices(workspace, store);
  if (recover?.undelete) choices.push(...deletionChoices(workspace, store));
  return h("div", { class: "recovery" },
    h("p", {}, happened ?? error?.explanation),
    details ? h("p", { class: "message" }, details) : null,
    h("div", { class: "safe" }, icon(ICONS.safe), h("p", {}, whatIsSafe(workspace))),
    h("h3", {}, "What to do"),
    choices.map((choice) => choiceForm(choice, onDone)));
}

/**
 * @param {Workspace} workspace
 * @param {Sink} store
 * @returns {Choice[]}
 */
function recoverChoices({ id, recover }, store) {
  /** @type {(choice: RecoverChoice, archive?: string) => Promise<void>} */
  const send = (choice, archive) => orStopAnother(async () =>
    store.put(await post(`/workspaces/${id}/recover`, archive ? { choice, archive } : { choice })));
  return (recover?.choices ?? []).map(({ choice, meaning, consequence }) => ({
    name: choice,
    label: CHOICES[choice],
    text: [`${capitalize(meaning)}.`, consequence].filter(Boolean).join(" "),
    needsConsent: Boolean(consequence),
    more: choice === "restore_archive" ? archiveList(recover?.archives ?? []) : null,
    submit: ({ archive }) => send(choice, archive),
  }));
}

/**
 * A deletion that failed can also be undone, or finished without a last archive.
 * @param {Workspace} workspace
 * @param {Sink} store
 * @returns {Choice[]}
 */
function deletionChoices(workspace, store) {
  return [
    {
      name: "keep",
      label: "Keep the workspace",
      text: "Undo the deletion and keep the workspace. Nothing is deleted.",
      secondary: true,
      submit: () => undelete(workspace, store),
    },
    {
      name: "purge",
      label: "Delete for good",
      text: "Delete it without a last archive. This cannot be undone.",
      needsConsent: true,
      submit: () => deleteWorkspace(workspace, store, { purge: true }),
    },
  ];
}

/**
 * @param {Choice} choice
 * @param {() => void} onDone
 */
function choiceForm({ name, label, text, needsConsent = false, secondary, more, submit }, onDone) {
  const consent = h("input", { type: "checkbox", required: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const style = needsConsent || secondary ? "button second" : "button";
  const send = h("button", { class: style, disabled: needsConsent }, label);
  consent.addEventListener("change", () => { send.disabled = !consent.checked; });
  const form = h("form", { class: "choice", "data-choice": name }, h("p", {}, text), more,
    needsConsent && checkboxField(consent, "I understand what this means."), problem, send);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      await submit(valuesOf(form));
      onDone();
    } catch (error) {
      send.disabled = false;
      setVisible(problem, true);
      setText(problem, messageOf(error));
    }
  });
  return form;
}

/** @param {ArchiveOption[]} archives */
function archiveList(archives) {
  const checked = archives.length === 1;
  return h("fieldset", { class: "archive-choice" }, h("legend", {}, "Which archive?"), archives.map((each) =>
    h("label", {},
      h("input", { type: "radio", name: "archive", value: each.archive_op_id, required: true, checked }),
      h("span", {}, archiveText(each)))));
}

/** @param {ArchiveOption} archive */
function archiveText(archive) {
  const time = archive.created_at ? moment(archive.created_at) : "time unknown";
  const current = archive.current && "the current one";
  return [time, archiveSize(archive), archiveVerification(archive), current].filter(Boolean).join(" · ");
}

/**
 * Say where the files are, and promise no more than is known.
 * @param {Pick<Workspace, "conditions" | "archive" | "error" | "out_of_reach">} workspace
 */
export function whatIsSafe({ conditions, archive, error, out_of_reach: lost }) {
  if (lost) return "Nothing was deleted. Whatever you choose, the disk on that node is kept.";
  const disk = conditions["storage.volume_ready"];
  if (disk?.status === "True") return "Your files are on the workspace’s disk.";
  const gone = conditions["storage.archive_ready"]?.reason === "Gone";
  if (disk?.status === "Unknown" || gone || !archive?.created_at || archive.size_bytes === null) {
    return "Nothing was deleted, and nothing will be deleted before you decide.";
  }
  const which = `the archive from ${moment(archive.created_at)} (${size(archive.size_bytes)})`;
  if (error?.reason === "DataLost") return `An older version of your files is in ${which}.`;
  if (error?.reason === "ArchiveCorrupted") return `Nothing was deleted: ${which} is unchanged.`;
  return `Your files are safe in ${which}.`;
}
