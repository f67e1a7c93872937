/** Everything that the pages behind the sign-in share: the session, the navigation and the live store. */

import { confirmPasswordWith, isUnreachable, messageOf, post, readSession } from "./api.js";
import { now } from "./clock.js";
import { confirmPassword } from "./components/confirm_password.js";
import { element, h, icon, mainElement, replaceChildren, setText } from "./dom.js";
import { moment } from "./format.js";
import { ICONS } from "./icons.js";
import { follow } from "./live.js";
import { BASE, goToLogin, link } from "./routes.js";
import { Store } from "./store.js";

/** @import { Person } from "./types.js" */
/** @typedef {{ main: HTMLElement, user: Person, store: Store }} PageContext */

const RETRY_MS = 3000;
const UNSAFE = "Workspaces run without a sandbox: code in them can read and change everything in CodeHub. " +
  "Unset CODEHUB_LOCAL_UNSAFE_NO_SANDBOX to protect this machine.";
const OFFLINE = "CodeHub does not answer. This page continues as soon as it does.";

/**
 * Show a page to the person who is signed in.
 * @param {(context: PageContext) => unknown} show
 */
export async function start(show) {
  const main = mainElement();
  const connection = element("connection");
  const { user, unsafe_workspaces: isUnsafe } = await waitForSession(connection);
  setText(connection, "");
  if (isUnsafe) main.before(h("p", { class: "banner", role: "alert" }, UNSAFE));
  confirmPasswordWith(confirmPassword);
  showNavigation(user);
  const store = new Store();
  main.replaceChildren();
  await show({ main, user, store });
  /** @type {number | undefined} */
  let lostAt;
  follow(store, (isLive) => {
    lostAt = isLive ? undefined : (lostAt ?? now());
    setText(connection, lostAt ? `Reconnecting… This page shows the state of ${moment(lostAt)}.` : "");
  });
}

/**
 * A centered message instead of a page, with the way back to the list.
 * @param {string} title
 * @param {string} text
 */
export function notice(title, text) {
  return h("div", { class: "card lone" }, h("h1", {}, title), h("p", {}, text),
    h("p", {}, h("a", { class: "button", href: link("/") }, "All workspaces")));
}

/** @param {HTMLElement} connection */
async function waitForSession(connection) {
  for (;;) {
    try {
      return await readSession();
    } catch (error) {
      setText(connection, isUnreachable(error) ? OFFLINE : messageOf(error));
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** @param {Person} user */
function showNavigation(user) {
  const here = location.pathname.slice(BASE.length);
  const pages = [["/", "Workspaces"], ["/account", "Account"]];
  if (user.role === "admin") pages.push(["/admin", "Admin"]);
  const links = pages.map(([path, label]) =>
    h("a", { href: link(path), "aria-current": here === path && "page" }, label));
  const leave = h("button", { class: "quiet-button", type: "button", onclick: signOut, title: "Sign out" },
    h("span", { class: "who" }, user.username), icon(ICONS.leave),
    h("span", { class: "unseen" }, "Sign out"));
  replaceChildren(element("navigation"), links, leave);
}

async function signOut() {
  try {
    await post("/logout");
  } finally {
    goToLogin();
  }
}
