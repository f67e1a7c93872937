/** What all signed-in pages share: who is signed in, the navigation, the live store. */

import { post, readSession, isUnreachable } from "./api.js";
import { h, icon, replace, say } from "./dom.js";
import { ICONS } from "./icons.js";
import { follow } from "./live.js";
import { BASE, goToLogin, link } from "./routes.js";
import { Store } from "./store.js";
import { moment } from "./format.js";
import { now } from "./clock.js";

const AGAIN_MS = 3000;
const OFFLINE = "CodeHub does not answer. This page goes on by itself as soon as it does.";

/** Run a page for whoever is signed in; `page` gets the main element, the user and the store. */
export async function start(page) {
  const main = document.getElementById("main");
  const connection = document.getElementById("connection");
  const session = await signedIn(connection);
  say(connection, "");
  showNavigation(session.user);
  const store = new Store();
  main.replaceChildren();
  await page({ main, user: session.user, store });
  let lostAt;
  follow(store, (isLive) => {
    lostAt = isLive ? undefined : (lostAt ?? now());
    say(connection, isLive ? "" : `Connecting again… What you see is from ${moment(lostAt)}.`);
  });
}

async function signedIn(connection) {
  for (;;) {
    try {
      return await readSession();
    } catch (error) {
      say(connection, isUnreachable(error) ? OFFLINE : error.message);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

function showNavigation(user) {
  const here = location.pathname.slice(BASE.length);
  const pages = [["/", "Workspaces"], ["/account", "Account"]];
  if (user.role === "admin") pages.push(["/admin", "Admin"]);
  const links = pages.map(([path, label]) =>
    h("a", { href: link(path), "aria-current": here === path && "page" }, label));
  const leave = h("button", { class: "quiet-button", type: "button", onclick: signOut, title: "Sign out" },
    h("span", { class: "who" }, user.username), icon(ICONS.leave), h("span", { class: "unseen" }, "Sign out"));
  replace(document.getElementById("navigation"), links, leave);
}

async function signOut() {
  try {
    await post("/logout");
  } finally {
    goToLogin();
  }
}
