/** A new password. */

import { post } from "../api.js";
import { h } from "../dom.js";
import { field, formOf } from "../components/forms.js";
import { toast } from "../components/toast.js";
import { section } from "../components/section.js";

/** `changed` is called when all other sign-ins have ended. */
export function passwordSection(username, changed) {
  const secret = (name, autocomplete) => h("input", { type: "password", name, autocomplete, required: true, maxlength: 1024 });
  const again = secret("again", "new-password");
  const chosen = secret("new_password", "new-password");
  const compare = () => again.setCustomValidity(again.value === chosen.value ? "" : "This is not the same password.");
  for (const each of [again, chosen]) each.addEventListener("input", compare);
  const form = formOf({ button: "Change password", submit: async (values, sent) => {
    await post("/password", { current_password: values.current_password, new_password: values.new_password });
    sent.reset();
    toast("Your password is changed. Your other sign-ins have ended.");
    changed();
  } },
  // Password managers want to know whose it is.
  h("input", { type: "text", name: "username", value: username, autocomplete: "username", class: "unseen", tabindex: "-1", "aria-hidden": "true", readonly: true }),
  field("Present password", secret("current_password", "current-password")),
  field("New password", chosen, { hint: "A few words that belong together only for you." }),
  field("New password again", again));
  return section("Password", h("p", { class: "quiet" }, "All your other sign-ins end when you change it."), form);
}
