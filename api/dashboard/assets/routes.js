/** Paths below the public address of CodeHub, and the way to the sign-in page and back. */

// This file is at {base}/assets/{digest}/routes.js.
export const BASE = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");
const SIGNED_IN = "codehub:signed-in";
// Browsers may read a backslash or a control character as part of another host's address.
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\\\u0000-\u0020\u007f]/;

/** @param {string} path */
export function link(path) {
  return BASE + path;
}

/**
 * Return the path to open after signing in: always one of this CodeHub, never another address.
 * @param {string} search
 */
export function safeNext(search) {
  const wanted = new URLSearchParams(search).get("next") ?? "/";
  if (!wanted.startsWith("/") || wanted.startsWith("//") || UNSAFE.test(wanted)) return "/";
  const url = new URL(BASE + wanted, location.origin);
  const isHere = url.origin === location.origin && url.pathname.startsWith(`${BASE}/`);
  const path = url.pathname.slice(BASE.length);
  return isHere && !path.startsWith("//") && path !== "/login" ? path + url.search + url.hash : "/";
}

/**
 * Remember a hint for the next visit. Only the cookie decides, and scripts cannot read it.
 * @param {boolean} signedIn
 */
export function rememberSignIn(signedIn) {
  if (signedIn) localStorage.setItem(SIGNED_IN, "yes");
  else localStorage.removeItem(SIGNED_IN);
}

export function mayBeSignedIn() {
  return localStorage.getItem(SIGNED_IN) !== null;
}

export function goToLogin() {
  rememberSignIn(false);
  const here = location.pathname.slice(BASE.length) + location.search;
  location.replace(link(here === "/" ? "/login" : `/login?next=${encodeURIComponent(here)}`));
}

/** Return the id in `/workspaces/{id}`. */
export function idInPath() {
  return decodeURIComponent(location.pathname.slice(BASE.length).split("/")[2] ?? "");
}
