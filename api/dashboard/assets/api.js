/** Requests to the API: JSON in and out, changes with the CSRF token, every refusal with its sentence. */

import { noteServerTime } from "./clock.js";
import { goToLogin, link, rememberSignIn } from "./routes.js";

const UNREACHABLE = "CodeHub cannot be reached. Check your connection, then try again.";
const SAFE = new Set(["GET"]);
let csrfToken = null;

/** What the API (or the way to it) refused; `message` is a sentence for a person. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.message ?? `CodeHub answered with ${status}.`);
    Object.assign(this, { status, code: problem.code ?? "UNKNOWN", problem });
  }

  /** The message about one field of what was sent, if there is one. */
  about(field) {
    return this.problem.fields?.find((each) => each.field === `body.${field}`)?.message;
  }
}

export function isUnreachable(error) {
  return error instanceof Refusal && (error.status === 0 || error.status >= 502);
}

/** Whoever is signed in; the page of somebody who is not goes to the sign-in page. */
export async function readSession() {
  const session = await get("/session");
  csrfToken = session.csrf_token;
  rememberSignIn(true);
  return session;
}

export const get = (path, options) => ask("GET", path, undefined, options);
export const post = (path, body, options) => ask("POST", path, body, options);
export const patch = (path, body, options) => ask("PATCH", path, body, options);
export const remove = (path, options) => ask("DELETE", path, undefined, options);

/** The answer's document; `strangersMayAsk` leaves a 401 to the caller. */
export async function ask(method, path, body, options = {}) {
  let response = await send(method, path, body, options);
  if (response.status === 403 && !SAFE.has(method) && (await codeOf(response.clone())) === "CSRF_TOKEN_MISSING") {
    // Somebody signed in anew in another tab: the cookie changed under us.
    await readSession();
    response = await send(method, path, body, options);
  }
  if (response.status === 401 && !options.strangersMayAsk) {
    goToLogin();
    return new Promise(() => {});
  }
  if (!response.ok) throw new Refusal(response.status, await problemOf(response));
  return response.status === 204 ? null : response.json();
}

/** A text as it comes, piece by piece. */
export async function readText(path, signal, onText) {
  const response = await send("GET", path, undefined, { signal });
  if (!response.ok) throw new Refusal(response.status, await problemOf(response));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) onText(piece.value);
}

async function send(method, path, body, { signal, headers = {} }) {
  const all = { Accept: "application/json", ...headers };
  if (body !== undefined) all["Content-Type"] = "application/json";
  if (!SAFE.has(method) && csrfToken) all["X-CSRF-Token"] = csrfToken;
  try {
    const response = await fetch(link(`/api/v1${path}`), {
      method, headers: all, signal, credentials: "same-origin", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    noteServerTime(response.headers.get("Date"));
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal(0, { code: "UNREACHABLE", message: UNREACHABLE });
  }
}

async function problemOf(response) {
  try {
    return (await response.json()).error ?? {};
  } catch {
    return {};
  }
}

async function codeOf(response) {
  return (await problemOf(response)).code;
}
