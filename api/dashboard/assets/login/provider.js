/** Sign in through an identity provider: its button, and what went wrong there. */

import { messageOf, post } from "../api.js";
import { button } from "../dom.js";
import { SIGN_IN_PROBLEMS } from "../words.js";

const UNKNOWN_PROBLEM = "You could not be signed in. Try again.";

/**
 * Return the sentence about a problem that came back in the address, or "" if there was none.
 * @param {string} search
 * @param {string | null} provider
 */
export function problemIn(search, provider) {
  const code = new URLSearchParams(search).get("problem");
  if (code === null) return "";
  const isKnown = Object.hasOwn(SIGN_IN_PROBLEMS, code);
  const sentence = isKnown ? SIGN_IN_PROBLEMS[code] : UNKNOWN_PROBLEM;
  return sentence.replace("{provider}", provider ?? "single sign-on") + (isKnown ? ` (${code})` : "");
}

/** @param {string} search */
export function hasSignedIn(search) {
  return new URLSearchParams(search).get("signed_in") === "yes";
}

/**
 * @param {string} provider
 * @param {string} next the page to open afterwards
 * @param {(text: string) => void} showProblem
 */
export function providerButton(provider, next, showProblem) {
  const control = button({ class: "button wide", onclick: async () => {
    control.disabled = true;
    showProblem("");
    try {
      const { url } = await post("/oidc/sign-in", { next }, { anonymous: true });
      location.assign(url);
    } catch (error) {
      control.disabled = false;
      showProblem(messageOf(error));
    }
  } }, `Sign in with ${provider}`);
  return control;
}
