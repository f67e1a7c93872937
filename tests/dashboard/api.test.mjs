import { requests, respond, storage, visited } from "./browser.mjs";

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import {
  ApiError, confirmPasswordWith, get, isUnreachable, messageOf, patch, post, readSession, remove,
} from "../../api/dashboard/assets/api.js";
import { BASE } from "../../api/dashboard/assets/routes.js";

const SESSION = { user: { id: "1", username: "ada", role: "user" }, csrf_token: "secret" };

beforeEach(() => {
  requests.length = 0;
  visited.length = 0;
});

test("a document is returned", async () => {
  respond(200, { items: [1] });
  assert.deepEqual(await get("/workspaces"), { items: [1] });
  assert.equal(requests[0].url, `${BASE}/api/v1/workspaces`);
});

test("an empty response is null", async () => {
  respond(204);
  assert.equal(await remove("/tokens/1"), null);
});

test("a change carries the CSRF token of the session", async () => {
  respond(200, SESSION);
  await readSession();
  respond(200, {});
  await patch("/workspaces/1", { name: "new" });
  assert.equal(requests[0].headers["X-CSRF-Token"], undefined);
  assert.equal(requests[1].headers["X-CSRF-Token"], "secret");
  assert.equal(requests[1].body, '{"name":"new"}');
});

test("a change is sent again with the token of the new session", async () => {
  respond(403, { error: { code: "CSRF_TOKEN_MISSING", message: "No token." } });
  respond(200, { ...SESSION, csrf_token: "newer" });
  respond(200, { id: "1" });
  assert.deepEqual(await post("/workspaces", { name: "a" }), { id: "1" });
  assert.deepEqual(requests.map(({ method }) => method), ["POST", "GET", "POST"]);
  assert.equal(requests[2].headers["X-CSRF-Token"], "newer");
});

test("a request that needs the password is sent again after it was entered", async () => {
  const refusal = { error: { code: "REAUTHENTICATION_REQUIRED", message: "Enter your password again." } };
  confirmPasswordWith(async () => true);
  respond(403, refusal);
  respond(201, { id: "1" });
  assert.deepEqual(await post("/tokens", { name: "a" }), { id: "1" });
  assert.equal(requests.length, 2);
  confirmPasswordWith(async () => false);
  respond(403, refusal);
  await assert.rejects(post("/tokens", { name: "a" }), { message: "Enter your password again." });
  assert.equal(requests.length, 3);
});

test("another refusal is an error with its message", async () => {
  const fields = [{ field: "body.name", message: "Too long." }];
  respond(403, { error: { code: "FORBIDDEN", message: "Not yours.", fields } });
  const error = await post("/workspaces", {}).catch((each) => each);
  assert.ok(error instanceof ApiError);
  assert.equal(error.message, "Not yours.");
  assert.equal(error.about("name"), "Too long.");
  assert.equal(error.about("memo"), undefined);
});

test("an error without a document still has a message", async () => {
  respond(500);
  await assert.rejects(get("/workspaces"), { message: "CodeHub responded with status 500.", status: 500 });
});

test("without a session the page goes to the sign-in page and back", async () => {
  storage.set("codehub:signed-in", "yes");
  respond(401, {});
  get("/workspaces");
  await new Promise((resolve) => setImmediate(resolve));
  assert.match(visited[0], /\/login\?next=/);
  assert.equal(storage.has("codehub:signed-in"), false);
});

test("an anonymous request fails instead", async () => {
  respond(401, { error: { code: "UNAUTHORIZED", message: "Wrong password." } });
  await assert.rejects(post("/login", {}, { anonymous: true }), { message: "Wrong password." });
  assert.deepEqual(visited, []);
});

test("no server and a bad gateway count as unreachable", async () => {
  respond(0);
  const offline = await get("/session").catch((error) => error);
  assert.equal(offline.message, "CodeHub cannot be reached. Check your connection, then try again.");
  assert.equal(isUnreachable(offline), true);
  assert.equal(isUnreachable(new ApiError(503, {})), true);
  assert.equal(isUnreachable(new ApiError(500, {})), false);
  assert.equal(isUnreachable(new TypeError("a bug")), false);
});

test("a bug is not shown as a message", () => {
  assert.equal(messageOf(new ApiError(400, { message: "No." })), "No.");
  assert.throws(() => messageOf(new TypeError("a bug")), TypeError);
});
