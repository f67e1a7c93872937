/** Signing in, and going back to where one came from. */

import { get, post } from "../api.js";
import { h, say, toggle } from "../dom.js";
import { duration } from "../format.js";
import { field } from "../components/forms.js";
import { link, mayBeSignedIn, rememberSignIn, safeNext } from "../routes.js";

const main = document.getElementById("main");
const next = safeNext(location.search);
const username = h("input", { name: "username", required: true, autocomplete: "username", autocapitalize: "none", spellcheck: "false", maxlength: 64 });
const password = h("input", { name: "password", type: "password", required: true, autocomplete: "current-password", maxlength: 1024 });
const problem = h("p", { class: "problem", role: "alert", hidden: true });
const button = h("button", { class: "button wide" }, "Sign in");
let waiting;

async function signIn(event) {
  event.preventDefault();
  const missing = [username, password].find((each) => !each.value);
  if (missing) {
    tell(missing === username ? "Enter your user name." : "Enter your password.");
    return missing.focus();
  }
  if (button.disabled) return undefined;
  button.disabled = true;
  try {
    const form = { username: username.value.trim(), password: password.value };
    await post("/login", form, { strangersMayAsk: true });
    rememberSignIn(true);
    location.replace(link(next));
  } catch (error) {
    button.disabled = false;
    tell(error.message);
    if (error.problem?.retry_after_seconds) countDown(error.problem.retry_after_seconds);
    else password.select();
  }
  return undefined;
}

/** Locked out: says when it may be tried again, and makes nobody guess. */
function countDown(seconds) {
  const end = Date.now() + seconds * 1000;
  button.disabled = true;
  clearInterval(waiting);
  const tick = () => {
    const left = Math.ceil((end - Date.now()) / 1000);
    if (left > 0) return say(button, `Try again in ${duration(left)}`);
    clearInterval(waiting);
    say(button, "Sign in");
    button.disabled = false;
    return tell("");
  };
  waiting = setInterval(tick, 1000);
  tick();
}

function tell(words) {
  say(problem, words);
  toggle(problem, words !== "");
}

/** Whoever is signed in already has nothing to do here; strangers are not asked in vain. */
async function skipIfSignedIn() {
  username.focus();
  if (!mayBeSignedIn()) return;
  try {
    await get("/session", { strangersMayAsk: true });
    location.replace(link(next));
  } catch {
    rememberSignIn(false);
  }
}

main.className = "card lone sign-in";
main.replaceChildren(h("h1", {}, "Sign in"),
  h("p", { class: "quiet" }, next.startsWith("/w/") ? "Your workspace opens right after." : "To your workspaces, with every file where you left it."),
  h("form", { novalidate: true, onsubmit: signIn }, field("User name", username), field("Password", password), problem, button));
skipIfSignedIn();
