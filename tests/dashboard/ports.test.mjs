/** Ports in words, and what the dialog offers to share them. */

import "./browser.mjs";

import assert from "node:assert/strict";
import { test } from "node:test";

import { audiencesOf, lifetimesOf } from "../../api/dashboard/assets/components/share_dialog.js";
import { audienceOf, isAssigned, noteOf } from "../../api/dashboard/assets/workspace/ports.js";

test("who may open a port is said in words", () => {
  assert.equal(audienceOf(null), "Open to its owner only.");
  const share = { audience: "users", created_at: "2026-01-01T00:00:00Z", expires_at: null };
  assert.equal(audienceOf(share), "Open to users who are signed in.");
  const soon = new Date(Date.now() + 1_800_000).toISOString();
  const shared = audienceOf({ ...share, audience: "public", expires_at: soon });
  assert.equal(shared, "Open to everyone with the link, ends in 30 min.");
});

test("an empty list says why", () => {
  const ports = { items: [], unavailable: null };
  assert.match(noteOf(ports, false), /^Start the workspace/);
  assert.match(noteOf(ports, true), /^No program is listening/);
  assert.equal(noteOf({ ...ports, unavailable: "No agent." }, true), "No agent.");
});

test("the dialog offers only what administrators allow", () => {
  assert.deepEqual(audiencesOf({ sharing: "users" }).map(([each]) => each), ["users"]);
  assert.deepEqual(audiencesOf({ sharing: "public" }).map(([each]) => each), ["users", "public"]);
  const seconds = (longest) => lifetimesOf({ max_share_seconds: longest }).map(([each]) => each);
  assert.deepEqual(seconds(null), [3600, 28800, 86400, 604800, 2592000, ""]);
  assert.deepEqual(seconds(7200), [3600, 7200]);
  assert.deepEqual(seconds(60), [60]);
});

test("ports that nobody has chosen are kept apart unless they are shared", () => {
  const share = { audience: "users", created_at: "2026-01-01T00:00:00Z", expires_at: null };
  const ports = [3000, 32767, 32768, 45123, 60999, 61000];
  const assigned = ports.filter((port) => isAssigned({ port, share: null }));
  assert.deepEqual(assigned, [32768, 45123, 60999]);
  assert.equal(isAssigned({ port: 45123, share }), false);
});
