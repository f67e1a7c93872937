/** Sign in, then return to the page that asked for it. */

import { ApiError, get, messageOf, post } from "../api.js";
import { field } from "../components/forms.js";
import { h, mainElement, replaceChildren, setText, setVisible } from "../dom.js";
import { duration } from "../format.js";
import { link, mayBeSignedIn, rememberSignIn, safeNext } from "../routes.js";
import { hasSignedIn, problemIn, providerButton } from "./provider.js";

/** @import { SignInOptions } from "../types.js" */

const main = mainElement();
const next = safeNext(location.search);
const username = h("input", { name: "username", required: true, maxlength: 64, autocomplete: "username",
  autocapitalize: "none", spellcheck: "false" });
const password = h("input", { name: "password", type: "password", required: true, maxlength: 1024,
  autocomplete: "current-password" });
const code = h("input", { name: "code", maxlength: 64, autocomplete: "one-time-code", autocapitalize: "none",
  spellcheck: "false" });
const codeField = field("Code", code, "From your authenticator app, or a recovery code.");
const problem = h("p", { class: "problem", role: "alert", hidden: true });
const button = h("button", { class: "button wide" }, "Sign in");
codeField.hidden = true;
/** @type {ReturnType<typeof setInterval> | undefined} */
let countdown;

/** @param {Event} event */
async function signIn(event) {
  event.preventDefault();
  if (button.disabled || !isComplete()) return;
  button.disabled = true;
  try {
    const credentials = { username: username.value.trim(), password: password.value,
      ...(codeField.hidden ? {} : { code: code.value.trim() }) };
    await post("/login", credentials, { anonymous: true });
    rememberSignIn(true);
    location.replace(link(next));
  } catch (error) {
    button.disabled = false;
    if (needsCode(error)) askForCode();
    else showProblem(messageOf(error));
    const seconds = error instanceof ApiError && error.problem.retry_after_seconds;
    if (seconds) waitToRetry(seconds);
    else (codeField.hidden ? password : code).select();
  }
}

/** @param {unknown} error */
function needsCode(error) {
  return error instanceof ApiError && error.problem.code === "SECOND_FACTOR_REQUIRED";
}

function askForCode() {
  showProblem("");
  setVisible(codeField, true);
}

function isComplete() {
  /** @type {[HTMLInputElement, string][]} */
  const needed = [[username, "Enter your user name."], [password, "Enter your password."]];
  if (!codeField.hidden) needed.push([code, "Enter the code from your authenticator app."]);
  const [missing, request] = needed.find(([input]) => !input.value) ?? [];
  if (request) showProblem(request);
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

/** Go to the next page if somebody is signed in; return whether that happened. */
async function skipIfSignedIn() {
  if (!hasSignedIn(location.search) && !mayBeSignedIn()) return false;
  try {
    await get("/session", { anonymous: true });
    rememberSignIn(true);
    location.replace(link(next));
    return true;
  } catch {
    rememberSignIn(false);
    return false;
  }
}

/** @returns {Promise<SignInOptions>} */
async function readOptions() {
  try {
    return await get("/sign-in", { anonymous: true });
  } catch {
    // Submitting the form shows the error.
    return { provider: null, passwords: "everyone" };
  }
}

async function show() {
  const { provider, passwords } = await readOptions();
  const passwordForm = h("form", { novalidate: true, onsubmit: signIn },
    field("User name", username), field("Password", password), codeField, button);
  const rare = provider !== null && passwords === "administrators";
  main.className = "card lone sign-in";
  replaceChildren(main, [h("h1", {}, "Sign in"), h("p", { class: "quiet" }, hint), problem,
    provider && providerButton(provider, next, showProblem),
    provider && !rare && h("p", { class: "or" }, "or"),
    rare ? h("details", {}, h("summary", {}, "Sign in as an administrator"), passwordForm) : passwordForm]);
  showProblem(problemIn(location.search, provider));
  if (provider === null) username.focus();
}

const toWorkspace = next.startsWith("/w/");
const hint = toWorkspace ? "Your workspace opens right after." : "Every file is where you left it.";
if (!await skipIfSignedIn()) await show();
