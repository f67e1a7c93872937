/** The pure parts of the pages: filter and sort, history, actions, progress, safety. */

import "./browser.mjs";

import assert from "node:assert/strict";
import { test } from "node:test";

import { recoveryCodesText } from "../../api/dashboard/assets/account/authenticator.js";
import { deviceOf } from "../../api/dashboard/assets/account/sessions.js";
import { actionsKey, possibleActions } from "../../api/dashboard/assets/components/actions.js";
import { progressText } from "../../api/dashboard/assets/components/indicators.js";
import { whatIsSafe } from "../../api/dashboard/assets/components/recovery.js";
import { countGroups, filterAndSort } from "../../api/dashboard/assets/list/filter.js";
import { safeNext } from "../../api/dashboard/assets/routes.js";
import { hasSignedIn, problemIn } from "../../api/dashboard/assets/login/provider.js";
import { mergeHistory } from "../../api/dashboard/assets/workspace/audit_trail.js";
import { bucketsOf } from "../../api/dashboard/assets/workspace/usage.js";
import { READY, busy, failed, outOfReach, workspace } from "./workspaces.mjs";

const ALL = [
  workspace({ id: "a", name: "ten 10", last_access_at: "2026-07-02T00:00:00Z" }),
  workspace({ id: "b", name: "Ten 9", phase: "RUNNING", archive: { size_bytes: 9, created_at: null } }),
  workspace({ id: "c", name: "archive", description: "the THESIS", phase: "ARCHIVED" }),
  busy({ id: "d", name: "busy" }),
  failed({ id: "e", name: "lost" }),
];
const ids = (choice) =>
  filterAndSort(ALL, { group: "all", order: "name", search: "", ...choice }).map(({ id }) => id).join("");

test("groups", () => {
  assert.deepEqual(countGroups(ALL), { all: 5, running: 1, busy: 1, stopped: 1, archived: 1, error: 1 });
  assert.equal(ids({ group: "stopped" }), "a");
  assert.equal(ids({ group: "no such group" }).length, 5);
});

test("orders", () => {
  assert.equal(ids({ order: "name" }), "cdeba");
  assert.equal(ids({ order: "used" }), "abcde");
  assert.equal(ids({ order: "phase" }), "ebdac");
  assert.equal(ids({ order: "size" }), "bacde");
});

test("every word of the search has to be found", () => {
  assert.equal(ids({ search: "thesis ARCH" }), "c");
  assert.equal(ids({ search: "thesis nothing" }), "");
});

const event = (fields) => ({
  id: 1, at: "2026-07-01T12:00:00Z", actor: "ada", detail: {}, error_reason: null, ...fields,
});
const operation = (fields) => ({
  id: 1, operation: "STARTING", result: "COMPLETED", started_at: "2026-07-01T12:00:00Z",
  ended_at: "2026-07-01T12:00:10Z", ...fields,
});

test("events are told as sentences", () => {
  const texts = [
    event({ kind: "state_requested", detail: { to: "ARCHIVED" }, actor: "ttl" }),
    event({ kind: "state_requested", detail: { to: "DELETED", purge: true } }),
    event({ kind: "recovery_requested", detail: { choice: "retry" } }),
    event({ kind: "error_found", error_reason: "DataLost", actor: "control-plane" }),
    event({ kind: "metadata_changed" }),
    event({ kind: "of_tomorrow" }),
  ].map((each) => mergeHistory([], [each], [null, null])[0]).map(({ actor, text }) => `${actor} ${text}`);
  assert.deepEqual(texts, [
    "CodeHub asked to archive it because nobody used it", "ada asked to delete it for good",
    "ada asked to recover it: Try again", "CodeHub noticed a problem: Files are missing",
    "ada changed its settings", "ada of tomorrow",
  ]);
});

test("an operation has its failed attempts, the oldest first", () => {
  const failedAt = (at, id) => event({ kind: "attempt_failed", at, id });
  const times = ["2026-07-01T12:01:00Z", "2026-07-01T12:00:08Z", "2026-07-01T12:00:05Z"];
  const events = times.map((at, index) => failedAt(at, 3 - index));
  const [entry] = mergeHistory([operation()], events, [null, null]);
  assert.deepEqual(entry.attempts.map(({ id }) => id), [1, 2]);
});

test("the history has no gaps: it ends where one of the lists ends", () => {
  const operations = [operation({ started_at: "2026-07-01T13:00:00Z" }), operation()];
  const events = [event({ kind: "created", at: "2026-07-01T12:30:00Z" })];
  assert.equal(mergeHistory(operations, events, [null, "more"]).length, 2);
  assert.equal(mergeHistory(operations, events, [null, null]).length, 3);
});

test("actions depend on the state", () => {
  const running = possibleActions(workspace({ phase: "RUNNING" }));
  assert.deepEqual(running, { shown: ["open", "stop"], more: ["archive", "delete"] });
  assert.deepEqual(possibleActions(failed()).shown, ["recover"]);
  assert.deepEqual(possibleActions(failed({ deleted_at: "2026-07-01T12:00:00Z" })).more, ["keep", "purge"]);
  assert.deepEqual(possibleActions(busy()).shown, ["open"]);
  assert.deepEqual(possibleActions(busy({ desired_state: "ARCHIVED" })).shown, []);
  assert.deepEqual(possibleActions(workspace({ phase: "DELETING", desired_state: "DELETED" })).more, []);
  assert.notEqual(actionsKey(workspace()), actionsKey(workspace({ name: "other" })));
  assert.deepEqual(possibleActions(outOfReach()).shown, ["recover"]);
  assert.deepEqual(possibleActions(outOfReach({ desired_state: "DELETED", deleted_at: "2026-07-01" })),
    { shown: ["recover"], more: [] });
  assert.deepEqual(possibleActions(outOfReach({ recover: null })).shown, ["open", "start"]);
  assert.notEqual(actionsKey(outOfReach()), actionsKey(outOfReach({ recover: null })));
});

test("a transfer has a rate and a remaining time", () => {
  const now = Date.now();
  const samples = [{ at: now - 2000, done: 20e6 }, { at: now, done: 100e6 }];
  const progress = { step: "upload", done: 100e6, total: 300e6, unit: "bytes", samples };
  assert.equal(progressText(busy(), progress), "100 MB of 300 MB · 40 MB/s · 5 s left");
  assert.equal(progressText(busy(), { ...progress, step: "verify" }).split(" · ")[0], "Verifying");
});

test("other steps have their name and the time so far", () => {
  const started = new Date(Date.now() - 4500).toISOString();
  const starting = busy({ operation_started_at: started });
  const step = { step: "launch", done: 0, total: null, unit: "steps", samples: [] };
  assert.equal(progressText(starting, step), "Launching the IDE · 4 s so far");
  assert.equal(progressText(starting, { ...step, step: "of_tomorrow" }), "4 s so far");
  assert.equal(progressText(busy(), undefined), "Waiting for its turn");
});

test("no more is promised than is known", () => {
  const disk = (status) => ({ "storage.volume_ready": { ...READY, status } });
  const archive = { size_bytes: 312e6, created_at: "2025-05-03T14:02:00Z" };
  const said = (fields) => whatIsSafe({ conditions: disk("False"), archive, error: null, ...fields });
  assert.match(said({ conditions: disk("True") }), /on the workspace’s disk/);
  assert.match(said({ conditions: disk("Unknown") }), /nothing will be deleted before you decide/);
  assert.match(said({ archive: null }), /nothing will be deleted before you decide/);
  assert.match(said({}), /safe in the archive from 3 May 2025, .* \(312 MB\)/);
  assert.match(said({ error: { reason: "DataLost" } }), /^An older version of your files is in/);
  assert.match(said({ error: { reason: "ArchiveCorrupted" } }), /^Nothing was deleted: .* is unchanged/);
  const lost = { conditions: disk("True"), out_of_reach: { message: "On a lost node." } };
  assert.match(said(lost), /the disk on that node is kept/);
});

test("usage fills the buckets in which it happened", () => {
  const activity = { since: "2026-07-01T12:00:00Z", bucket_seconds: 600, used: ["2026-07-01T12:10:00Z"] };
  assert.deepEqual(bucketsOf(activity, Date.parse("2026-07-01T12:30:00Z")), [false, true, false]);
});

test("signing in leads only to paths of this CodeHub", () => {
  for (const wrong of ["//evil.example", "https://evil.example", "/\\evil.example", "/a\tb", "evil"]) {
    assert.equal(safeNext(`?next=${encodeURIComponent(wrong)}`), "/", wrong);
  }
});

test("a session names its browser and system", () => {
  assert.equal(deviceOf("Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0 Safari/537.36"), "Chrome on Linux");
  assert.equal(deviceOf("curl/8.0"), "curl");
  assert.equal(deviceOf(null), "Unknown program");
});

test("problems at the identity provider are told as sentences with a code", () => {
  assert.equal(problemIn("", "Example"), "");
  assert.equal(problemIn("?problem=oidc_unavailable", "Example"),
    "Example is not responding. Try again in a minute. (oidc_unavailable)");
  assert.match(problemIn("?problem=oidc_refused", null), /^single sign-on did not sign you in/);
  for (const code of ["constructor", "<b>", ""]) {
    const search = `?problem=${encodeURIComponent(code)}`;
    assert.equal(problemIn(search, "Example"), "You could not be signed in. Try again.");
  }
});

test("only the callback's own mark counts as signed in", () => {
  assert.equal(hasSignedIn("?signed_in=yes&next=%2F"), true);
  assert.equal(hasSignedIn("?signed_in=no"), false);
  assert.equal(hasSignedIn(""), false);
});

test("recovery codes are counted in words", () => {
  assert.equal(recoveryCodesText(10), "10 recovery codes are left.");
  assert.equal(recoveryCodesText(1), "One recovery code is left.");
  assert.match(recoveryCodesText(0), /^No recovery codes are left/);
});
