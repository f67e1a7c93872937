/** Change your password. */

import { post } from "../api.js";
import { createForm, field } from "../components/forms.js";
import { section } from "../components/section.js";
import { toast } from "../components/toast.js";
import { h } from "../dom.js";

/**
 * @param {string} username
 * @param {() => void} onChanged
 */
export function passwordSection(username, onChanged) {
  const again = passwordInput("again", "new-password");
  const chosen = passwordInput("new_password", "new-password");
  const compare = () =>
    again.setCustomValidity(again.value === chosen.value ? "" : "The two passwords are different.");
  for (const each of [again, chosen]) each.addEventListener("input", compare);
  const form = createForm({ button: "Change password", submit: async (values, sent) => {
    await post("/password", { current_password: values.current_password, new_password: values.new_password });
    sent.reset();
    toast("Password changed. You are signed out everywhere else, and your tokens are revoked.");
    onChanged();
  } },
  // Password managers need the user name.
  h("input", { type: "text", name: "username", value: username, autocomplete: "username", class: "unseen",
    tabindex: "-1", "aria-hidden": "true", readonly: true }),
  field("Current password", passwordInput("current_password", "current-password")),
  field("New password", chosen, "A few words that only you would put together."),
  field("New password again", again));
  const hint = "Changing it signs you out everywhere else and revokes your tokens.";
  return section("Password", h("p", { class: "quiet" }, hint), form);
}

/**
 * @param {string} name
 * @param {string} autocomplete
 */
function passwordInput(name, autocomplete) {
  return h("input", { type: "password", name, autocomplete, required: true, maxlength: 1024 });
}
