/** Ask for the password again, before CodeHub creates a token or changes an account. */

import { get, post } from "../api.js";
import { button, h } from "../dom.js";
import { BASE, goToLogin } from "../routes.js";
import { openDialog } from "./dialog.js";
import { createForm, field } from "./forms.js";
import { reportErrors } from "./toast.js";

/** @import { AuthenticatorView } from "../types.js" */

/**
 * Open a dialog; return whether the password was right. Closing the dialog returns false.
 * @returns {Promise<boolean>}
 */
export async function confirmPassword() {
  /** @type {AuthenticatorView} */
  const { available } = await get("/authenticator");
  if (!available) return confirmAtProvider();
  return new Promise((resolve) => {
    const password = h("input", { type: "password", name: "password", autocomplete: "current-password",
      required: true, maxlength: 1024 });
    const again = button({ class: "button second", onclick: signInAgain }, "Sign in again instead");
    const form = createForm({ button: "Continue", cancel: again, submit: async (values) => {
      await post("/session/confirm", values);
      resolve(true);
      dialog.close();
    } }, h("p", { class: "quiet" }, "This protects your account from whoever finds it open."),
    field("Password", password));
    const dialog = openDialog("Enter your password again", form);
    dialog.addEventListener("close", () => resolve(false));
    password.focus();
  });
}

/**
 * For accounts without a password: authenticate again at the provider. The page reloads afterwards.
 * @returns {Promise<boolean>}
 */
function confirmAtProvider() {
  return new Promise((resolve) => {
    const go = button({ class: "button", onclick: () => reportErrors(async () => {
      const next = location.pathname.slice(BASE.length) + location.search;
      const { url } = await post("/oidc/sign-in", { next, fresh: true });
      location.assign(url);
    }) }, "Sign in again");
    const dialog = openDialog("Sign in again",
      h("p", { class: "quiet" }, "This protects your account from whoever finds it open."), go);
    dialog.addEventListener("close", () => resolve(false));
    go.focus();
  });
}

async function signInAgain() {
  try {
    await post("/logout");
  } finally {
    goToLogin();
  }
}
