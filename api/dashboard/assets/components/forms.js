/** Forms that show each error next to its field. */

import { ApiError, messageOf } from "../api.js";
import { h, setText, setVisible } from "../dom.js";

/** @import { Child } from "../dom.js" */
/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Control */
/** @typedef {Record<string, string>} Values */
/**
 * @typedef {object} FormOptions
 * @property {string} button
 * @property {(values: Values, form: HTMLFormElement) => Promise<unknown>} submit may throw an ApiError
 * @property {string} [tone]
 * @property {HTMLElement} [cancel]
 */

let count = 0;

/**
 * A control with its label, and a hint below it.
 * @param {string} label
 * @param {Control} control
 * @param {string} [hint]
 */
export function field(label, control, hint) {
  const id = `field-${(count += 1)}`;
  control.id = id;
  const problem = h("p", { class: "problem", id: `${id}-problem`, hidden: true });
  const note = hint && h("p", { class: "hint", id: `${id}-hint` }, hint);
  control.setAttribute("aria-describedby", `${note ? `${id}-hint ` : ""}${id}-problem`);
  return h("div", { class: "field" }, h("label", { for: id }, label), control, note, problem);
}

/**
 * @param {string} name
 * @param {[value: string | number, label: string][]} choices
 * @param {string | number} chosen
 */
export function select(name, choices, chosen) {
  return h("select", { name }, options(choices, chosen));
}

/**
 * @param {[value: string | number, label: string][]} choices
 * @param {string | number} chosen
 */
export function options(choices, chosen) {
  return choices.map(([value, label]) =>
    h("option", { value, selected: String(value) === String(chosen) }, label));
}

/**
 * A checkbox with its label.
 * @param {HTMLInputElement} checkbox
 * @param {string} label
 */
export function checkboxField(checkbox, label) {
  return h("label", { class: "consent" }, checkbox, label);
}

/**
 * @param {FormOptions} options
 * @param {Child[]} fields
 */
export function createForm({ button, tone = "", submit, cancel }, ...fields) {
  const general = h("p", { class: "problem", role: "alert", hidden: true });
  const send = h("button", { class: `button ${tone}` }, button);
  const buttons = h("div", { class: "buttons" }, send, cancel);
  const form = h("form", { novalidate: true }, ...fields, general, buttons);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.disabled || !validate(form)) return;
    send.disabled = true;
    form.setAttribute("aria-busy", "true");
    try {
      clearErrors(form, general);
      await submit(valuesOf(form), form);
    } catch (error) {
      showError(form, general, error);
    } finally {
      send.disabled = false;
      form.removeAttribute("aria-busy");
    }
  });
  form.addEventListener("input", ({ target }) => markField(form, /** @type {Control} */ (target), ""));
  return form;
}

/**
 * @param {HTMLFormElement} form
 * @returns {Values}
 */
export function valuesOf(form) {
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
}

/**
 * @param {HTMLFormElement} form
 * @returns {Control[]}
 */
function controlsOf(form) {
  return /** @type {Control[]} */ ([...form.elements]);
}

/** @param {HTMLFormElement} form */
function validate(form) {
  const wrong = controlsOf(form).filter((control) => control.willValidate && !control.checkValidity());
  for (const control of wrong) markField(form, control, control.validationMessage);
  wrong[0]?.focus();
  return wrong.length === 0;
}

/**
 * @param {HTMLFormElement} form
 * @param {HTMLElement} general
 * @param {unknown} error
 */
function showError(form, general, error) {
  const about = (/** @type {Control} */ { name }) =>
    (name && error instanceof ApiError && error.about(name)) || "";
  const wrong = controlsOf(form).filter(about);
  for (const control of wrong) markField(form, control, about(control));
  wrong[0]?.focus();
  setVisible(general, wrong.length === 0);
  setText(general, wrong.length ? "" : messageOf(error));
}

/**
 * @param {HTMLFormElement} form
 * @param {HTMLElement} general
 */
function clearErrors(form, general) {
  setVisible(general, false);
  for (const control of controlsOf(form)) markField(form, control, "");
}

/**
 * @param {HTMLFormElement} form
 * @param {Control} control
 * @param {string} message
 */
function markField(form, control, message) {
  /** @type {HTMLElement | null} */
  const problem = form.querySelector(`[id="${control.id}-problem"]`);
  if (!problem) return;
  setText(problem, message);
  setVisible(problem, message !== "");
  if (message) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
}
