/** Where we are: paths below the public address, and where to go after signing in. */

// This file is at {base}/assets/{digest}/routes.js.
export const BASE = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");
const HINT = "codehub:signed-in";
const ANYWHERE_ELSE = /[\\\u0000-\u0020\u007f]/;

export function link(path) {
  return BASE + path;
}

/** The path that a sign-in returns to: one of this site's, never another address. */
export function safeNext(search) {
  const wanted = new URLSearchParams(search).get("next") ?? "/";
  if (!wanted.startsWith("/") || wanted.startsWith("//") || ANYWHERE_ELSE.test(wanted)) return "/";
  const there = new URL(BASE + wanted, location.origin);
  const isHere = there.origin === location.origin && there.pathname.startsWith(`${BASE}/`);
  const path = there.pathname.slice(BASE.length);
  return isHere && !path.startsWith("//") && path !== "/login" ? path + there.search + there.hash : "/";
}

/** A hint and no more: the cookie decides, and no page can read it. */
export function rememberSignIn(signedIn) {
  if (signedIn) localStorage.setItem(HINT, "yes");
  else localStorage.removeItem(HINT);
}

export function mayBeSignedIn() {
  return localStorage.getItem(HINT) !== null;
}

export function goToLogin() {
  rememberSignIn(false);
  const here = location.pathname.slice(BASE.length) + location.search;
  location.replace(link(here === "/" ? "/login" : `/login?next=${encodeURIComponent(here)}`));
}

/** The id in `/workspaces/{id}`. */
export function idInPath() {
  return decodeURIComponent(location.pathname.slice(BASE.length).split("/")[2] ?? "");
}
