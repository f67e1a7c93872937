import assert from "node:assert/strict";
import { test } from "node:test";

import {
  badgeOf, conditionSentence, conditionsToShow, diskSentence, failureOf, isWaiting, whatNext,
} from "../../api/dashboard/assets/describe.js";
import { READY, busy, failed, workspace } from "./workspaces.mjs";

const WAITING = { resources: ["archive"], since: "2026-07-01T12:00:00Z", message: "Waiting." };

for (const [label, tone, given] of [
  ["Stopped", "rest", workspace()],
  ["New", "rest", workspace({ phase: "PENDING" })],
  ["Running", "go", workspace({ phase: "RUNNING" })],
  ["Archived", "deep", workspace({ phase: "ARCHIVED" })],
  ["Failed", "warn", failed()],
  ["Failed", "warn", workspace({ phase: "DELETING", needs_person: true })],
  ["Starting…", "move", busy()],
  ["Getting ready…", "move", busy({ operation: "NONE" })],
  ["Recovering…", "move", busy({ operation: "NONE", recovering: true })],
  ["Waiting…", "move", busy({ operation: "NONE", waiting: WAITING })],
  ["Archiving…", "move", busy({ operation: "ARCHIVING", waiting: WAITING })],
]) test(`badge ${label}`, () => assert.deepEqual(badgeOf(given), { label, tone }));

test("a workspace that is being recovered does not wait", () => {
  assert.equal(isWaiting(workspace({ waiting: WAITING })), true);
  assert.equal(isWaiting(workspace({ waiting: WAITING, recovering: true })), false);
});

test("an unknown error still has words", () => {
  assert.equal(failureOf(failed()), "Files are missing");
  assert.equal(failureOf(failed({ error: null })), "Something went wrong");
  assert.equal(failureOf(failed({ deleted_at: "2026-07-01T12:00:00Z" })), "It could not be deleted");
});

test("an idle workspace says what happens next", () => {
  const soon = { to: "ARCHIVED", at: new Date(Date.now() + 480_500).toISOString() };
  assert.equal(whatNext(workspace({ next_change: soon })), "Moves to an archive in 8 min unless used.");
  assert.equal(whatNext(workspace()), "Its files are safe on its disk.");
  const archive = { size_bytes: 312_000_000, created_at: null };
  assert.equal(whatNext(workspace({ phase: "ARCHIVED", archive })), "Safe in an archive of 312 MB.");
  assert.equal(whatNext(failed()), "Files are missing.");
});

test("the disk space that it uses has a sentence", () => {
  const disk = { used_bytes: 1_200_000_000, limit_bytes: 20_000_000_000, complete: true };
  assert.equal(diskSentence(workspace({ disk })), "Uses 1.2 GB of 20 GB of disk space.");
  const partial = { ...disk, limit_bytes: null, complete: false };
  assert.equal(diskSentence(workspace({ disk: partial })), "Uses at least 1.2 GB of disk space.");
  assert.equal(diskSentence(workspace({ disk: { ...disk, used_bytes: null } })), "");
});

test("a warning about the disk comes first", () => {
  const text = whatNext(workspace({ disk: { message: "It uses a lot." } }));
  assert.equal(text, "It uses a lot. Its files are safe on its disk.");
});

test("a changed configuration comes first", () => {
  const message = "Restart to apply the new image.";
  const changed = { ...READY, status: "False", reason: "Outdated", message };
  const conditions = { "infra.configuration_current": changed };
  const text = whatNext(workspace({ restart_to_apply: true, conditions }));
  assert.equal(text, "Restart to apply the new image. Its files are safe on its disk.");
});

test("conditions are shown in order, and some only if they are not met", () => {
  const conditions = {
    "policy.healthy": READY, "infra.container_answers": READY, "infra.container_ready": READY,
  };
  assert.deepEqual(conditionsToShow(conditions), ["infra.container_ready", "policy.healthy"]);
  const silent = { ...conditions, "infra.container_answers": { ...READY, status: "False" } };
  assert.equal(conditionsToShow(silent)[1], "infra.container_answers");
});

test("a condition says what its reason means", () => {
  const vanished = { status: "False", reason: "Vanished", message: "no volume" };
  const sentence = "Its disk has disappeared, with the newest files.";
  assert.equal(conditionSentence("storage.volume_ready", vanished), sentence);
  const wrong = { status: "False", reason: "DataLost", message: "lost" };
  assert.equal(conditionSentence("policy.healthy", wrong), "Something is wrong.");
  const unknown = { status: "Unknown", reason: "NotObserved", message: "" };
  assert.equal(conditionSentence("storage.volume_ready", unknown), "Not checked yet.");
  const outdated = { status: "False", reason: "Outdated", message: "Restart it." };
  assert.equal(conditionSentence("infra.configuration_current", outdated), "Restart it.");
});
