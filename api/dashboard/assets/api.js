/** Requests to the API: JSON in and out, the CSRF token, errors with a message for people. */

import { noteServerTime } from "./clock.js";
import { goToLogin, link, rememberSignIn } from "./routes.js";

/** @import { Problem, SessionView } from "./types.js" */
/** @typedef {{ signal?: AbortSignal, headers?: Record<string, string>, anonymous?: boolean }} Options */

const UNREACHABLE = "CodeHub cannot be reached. Check your connection, then try again.";
/** @type {string | null} */
let csrfToken = null;
/** @type {() => Promise<boolean>} */
let confirmPassword = async () => false;

/** An error response, or no response at all (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {Partial<Problem>} problem
   */
  constructor(status, problem) {
    super(problem.message ?? `CodeHub responded with status ${status}.`);
    this.status = status;
    this.problem = problem;
  }

  /**
   * Return the message about one field of the request.
   * @param {string} field
   */
  about(field) {
    return this.problem.fields?.find((each) => each.field === `body.${field}`)?.message;
  }
}

/** @param {unknown} error */
export function isUnreachable(error) {
  return error instanceof ApiError && (error.status === 0 || error.status >= 502);
}

/**
 * Return the message to show for an error; raise it again if it is a bug and not an error of the API.
 * @param {unknown} error
 */
export function messageOf(error) {
  if (error instanceof ApiError) return error.message;
  throw error;
}

/**
 * Return the session; without one, go to the sign-in page.
 * @returns {Promise<SessionView>}
 */
export async function readSession() {
  /** @type {SessionView} */
  const session = await get("/session");
  csrfToken = session.csrf_token;
  rememberSignIn(true);
  return session;
}

/**
 * Set how to ask for the password again; a request that needs it is then repeated.
 * @param {() => Promise<boolean>} ask returns whether the password was right
 */
export function confirmPasswordWith(ask) {
  confirmPassword = ask;
}

/**
 * @param {string} path
 * @param {Options} [options]
 */
export const get = (path, options) => request("GET", path, undefined, options);

/**
 * @param {string} path
 * @param {object} [body]
 * @param {Options} [options]
 */
export const post = (path, body, options) => request("POST", path, body, options);

/**
 * @param {string} path
 * @param {object} body
 */
export const patch = (path, body) => request("PATCH", path, body);

/**
 * @param {string} path
 * @param {object} body
 */
export const put = (path, body) => request("PUT", path, body);

/** @param {string} path */
export const remove = (path) => request("DELETE", path);

/**
 * Return the document of the response. With `anonymous`, a missing session is an error like any other.
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
async function request(method, path, body, options = {}) {
  let response = await send(method, path, body, options);
  if (response.status === 403) {
    const code = await codeOf(response);
    // Another tab may have signed in again, so the session cookie has changed.
    if (code === "CSRF_TOKEN_MISSING") await readSession();
    const again = code === "CSRF_TOKEN_MISSING"
      || (code === "REAUTHENTICATION_REQUIRED" && await confirmPassword());
    if (again) response = await send(method, path, body, options);
  }
  if (response.status === 401 && !options.anonymous) {
    goToLogin();
    return new Promise(() => {});
  }
  if (!response.ok) throw new ApiError(response.status, await problemOf(response));
  return response.status === 204 ? null : response.json();
}

/**
 * Pass on a text as it arrives.
 * @param {string} path
 * @param {AbortSignal} signal
 * @param {(text: string) => void} onText
 */
export async function readText(path, signal, onText) {
  const response = await send("GET", path, undefined, { signal });
  if (!response.ok || !response.body) throw new ApiError(response.status, await problemOf(response));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) onText(piece.value);
}

/**
 * @param {string} method
 * @param {string} path
 * @param {object | undefined} body
 * @param {Options} options
 */
async function send(method, path, body, { signal, headers }) {
  /** @type {Record<string, string>} */
  const all = { Accept: "application/json", ...headers };
  if (body !== undefined) all["Content-Type"] = "application/json";
  if (csrfToken) all["X-CSRF-Token"] = csrfToken;
  try {
    const response = await fetch(link(`/api/v1${path}`), {
      method, signal, headers: all, credentials: "same-origin", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    noteServerTime(response.headers.get("Date"));
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, { message: UNREACHABLE });
  }
}

/**
 * @param {Response} response
 * @returns {Promise<Partial<Problem>>}
 */
async function problemOf(response) {
  try {
    return (await response.json()).error ?? {};
  } catch {
    return {};
  }
}

/** @param {Response} response */
async function codeOf(response) {
  return (await problemOf(response.clone())).code;
}
