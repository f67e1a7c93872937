/** The second factor: add an authenticator app, keep its recovery codes, remove it. */

import { get, post, remove } from "../api.js";
import { createForm, field } from "../components/forms.js";
import { section } from "../components/section.js";
import { reportErrors, toast } from "../components/toast.js";
import { button, h, replaceChildren, svg } from "../dom.js";
import { moment } from "../format.js";

/** @import { AuthenticatorSecret, AuthenticatorView, QrCodeView } from "../types.js" */

const WHY = "With an authenticator app, your password alone is not enough to sign in.";
const REQUIRED = "Administrators need one here: you cannot use the administration pages until you add it.";

export class AuthenticatorSection {
  constructor() {
    this.content = h("div", {});
    this.element = section("Second factor", this.content);
    this.element.hidden = true;
  }

  /** Load the state; return whether the account has a password, which a second factor can protect. */
  async load() {
    /** @type {AuthenticatorView} */
    const status = await get("/authenticator");
    this.element.hidden = !status.available;
    const since = status.enabled_at;
    replaceChildren(this.content,
      since ? this.enabled(since, status.recovery_codes_left) : this.disabled(status));
    return status.available;
  }

  /** @param {AuthenticatorView} status */
  disabled({ required }) {
    const add = button({ class: "button second", onclick: () => reportErrors(async () =>
      this.showSecret(await post("/authenticator"))) }, "Add an authenticator app");
    return [h("p", { class: "quiet" }, WHY), required && h("p", { class: "problem" }, REQUIRED), add];
  }

  /**
   * @param {string} since
   * @param {number} left how many recovery codes are not used
   */
  enabled(since, left) {
    const control = button({ class: "button second", onclick: () => reportErrors(async () => {
      await remove("/authenticator");
      toast("Authenticator app removed. You now sign in with your password alone.");
      await this.load();
    }) }, "Remove the authenticator app");
    return [h("p", {}, `Sign-ins ask for a code since ${moment(since)}.`),
      h("p", { class: "quiet" }, recoveryCodesText(left)), control];
  }

  /** @param {AuthenticatorSecret} secret */
  showSecret({ secret, qr_code: code }) {
    const typed = h("input", { name: "code", required: true, maxlength: 64, inputmode: "numeric",
      autocomplete: "one-time-code" });
    const form = createForm({ button: "Turn on", submit: async (values) => {
      const { codes } = await post("/authenticator/enable", { code: values.code });
      this.showRecoveryCodes(codes);
    } }, field("Code", typed, "The six digits that the app shows now."));
    const text = h("input", { readonly: true, class: "secret", value: secret, "aria-label": "The secret" });
    replaceChildren(this.content,
      h("p", {}, "Scan this with your authenticator app, or type the secret into it."),
      drawQrCode(code), h("div", { class: "beside" }, text), form);
    typed.focus();
  }

  /** @param {string[]} codes */
  showRecoveryCodes(codes) {
    const done = button({ class: "button", onclick: () => this.load() }, "I have saved them");
    replaceChildren(this.content, h("div", { class: "once", role: "status" },
      h("p", {}, h("strong", {}, "Save these recovery codes now. "),
        "Each signs you in once without the app. CodeHub does not show them again."),
      h("pre", { class: "recovery-codes" }, codes.join("\n"))), done);
  }
}

/**
 * Return how many codes are left, in words.
 * @param {number} left
 */
export function recoveryCodesText(left) {
  if (left === 0) return "No recovery codes are left. Remove the app and add it again to get new ones.";
  return left === 1 ? "One recovery code is left." : `${left} recovery codes are left.`;
}

/** @param {QrCodeView} code */
export function drawQrCode({ size, path }) {
  return svg("svg", { viewBox: `0 0 ${size} ${size}`, class: "qr-code", role: "img",
    "aria-label": "QR code for your authenticator app", "shape-rendering": "crispEdges" },
  svg("rect", { width: size, height: size, fill: "#fff" }), svg("path", { d: path, fill: "#000" }));
}
