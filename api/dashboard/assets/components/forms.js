/** Forms whose errors stand beside the field that they are about. */

import { h, say, toggle } from "../dom.js";

let count = 0;

/** A labelled control; `hint` is said below it. */
export function field(label, control, { hint, name = control.name } = {}) {
  const id = `field-${(count += 1)}`;
  control.id = id;
  const problem = h("p", { class: "problem", id: `${id}-problem`, "data-problem": name, hidden: true });
  const note = hint && h("p", { class: "hint", id: `${id}-hint` }, hint);
  control.setAttribute("aria-describedby", `${note ? `${id}-hint ` : ""}${id}-problem`);
  return h("div", { class: "field" }, h("label", { for: id }, label), control, note, problem);
}

export function choose(name, options, chosen) {
  const items = options.map(([value, label]) => h("option", { value, selected: String(value) === String(chosen) }, label));
  return h("select", { name }, items);
}

/** A form that says what was refused; `submit` gets its values and may throw a Refusal. */
export function formOf({ button, tone = "", submit, cancel }, ...fields) {
  const general = h("p", { class: "problem", role: "alert", hidden: true });
  const send = h("button", { class: `button ${tone}` }, button);
  const buttons = h("div", { class: "buttons" }, send, cancel);
  const form = h("form", { novalidate: true }, fields, general, buttons);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.disabled || !validate(form)) return;
    send.disabled = true;
    form.setAttribute("aria-busy", "true");
    try {
      clear(form, general);
      await submit(Object.fromEntries(new FormData(form)), form);
    } catch (error) {
      tell(form, general, error);
      if (error.problem === undefined) throw error;
    } finally {
      send.disabled = false;
      form.removeAttribute("aria-busy");
    }
  });
  form.addEventListener("input", ({ target }) => mark(form, target, ""));
  return form;
}

function validate(form) {
  const wrong = [...form.elements].filter((control) => control.willValidate && !control.checkValidity());
  for (const control of wrong) mark(form, control, control.validationMessage);
  wrong[0]?.focus();
  return wrong.length === 0;
}

function tell(form, general, error) {
  const controls = [...form.elements].filter((control) => control.name && error.about?.(control.name));
  for (const control of controls) mark(form, control, error.about(control.name));
  controls[0]?.focus();
  toggle(general, controls.length === 0);
  say(general, controls.length ? "" : error.message);
}

function clear(form, general) {
  toggle(general, false);
  for (const control of form.elements) mark(form, control, "");
}

function mark(form, control, message) {
  const problem = form.querySelector(`[id="${control.id}-problem"]`);
  if (!problem) return;
  say(problem, message);
  toggle(problem, message !== "");
  if (message) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
}
