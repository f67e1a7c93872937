/** Sign in, then return to the page that asked for it. */

import { ApiError, get, messageOf, post } from "../api.js";
import { field } from "../components/forms.js";
import { h, mainElement, setText, setVisible } from "../dom.js";
import { duration } from "../format.js";
import { link, mayBeSignedIn, rememberSignIn, safeNext } from "../routes.js";

const main = mainElement();
const next = safeNext(location.search);
const username = h("input", { name: "username", required: true, maxlength: 64, autocomplete: "username",
  autocapitalize: "none", spellcheck: "false" });
const password = h("input", { name: "password", type: "password", required: true, maxlength: 1024,
  autocomplete: "current-password" });
const problem = h("p", { class: "problem", role: "alert", hidden: true });
const button = h("button", { class: "button wide" }, "Sign in");
/** @type {ReturnType<typeof setInterval> | undefined} */
let countdown;

/** @param {Event} event */
async function signIn(event) {
  event.preventDefault();
  if (button.disabled || !isComplete()) return;
  button.disabled = true;
  try {
    const credentials = { username: username.value.trim(), password: password.value };
    await post("/login", credentials, { anonymous: true });
    rememberSignIn(true);
    location.replace(link(next));
  } catch (error) {
    button.disabled = false;
    showProblem(messageOf(error));
    const seconds = error instanceof ApiError && error.problem.retry_after_seconds;
    if (seconds) waitToRetry(seconds);
    else password.select();
  }
}

function isComplete() {
  const missing = [username, password].find((each) => !each.value);
  if (missing) showProblem(missing === username ? "Enter your user name." : "Enter your password.");
  missing?.focus();
  return !missing;
}

/**
 * Lock the form after too many wrong passwords, and count down to the next attempt.
 * @param {number} seconds
 */
function waitToRetry(seconds) {
  const end = Date.now() + seconds * 1000;
  button.disabled = true;
  clearInterval(countdown);
  const tick = () => {
    const left = Math.ceil((end - Date.now()) / 1000);
    if (left > 0) {
      setText(button, `Try again in ${duration(left)}`);
      return;
    }
    clearInterval(countdown);
    setText(button, "Sign in");
    button.disabled = false;
    showProblem("");
  };
  countdown = setInterval(tick, 1000);
  tick();
}

/** @param {string} text */
function showProblem(text) {
  setText(problem, text);
  setVisible(problem, text !== "");
}

async function skipIfSignedIn() {
  username.focus();
  if (!mayBeSignedIn()) return;
  try {
    await get("/session", { anonymous: true });
    location.replace(link(next));
  } catch {
    rememberSignIn(false);
  }
}

const toWorkspace = next.startsWith("/w/");
const hint = toWorkspace ? "Your workspace opens right after." : "Every file is where you left it.";
main.className = "card lone sign-in";
main.replaceChildren(h("h1", {}, "Sign in"), h("p", { class: "quiet" }, hint),
  h("form", { novalidate: true, onsubmit: signIn },
    field("User name", username), field("Password", password), problem, button));
skipIfSignedIn();
