import { FakeEventSource, respond } from "./browser.mjs";

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Feed, reconnectDelay } from "../../api/dashboard/assets/live.js";
import { Store } from "../../api/dashboard/assets/store.js";
import { advance, startClock, stopClock } from "./clock.mjs";
import { workspace } from "./workspaces.mjs";

const SESSION = { user: {}, csrf_token: null };
const settle = () => new Promise((resolve) => setImmediate(resolve));
let feed, states, store;

beforeEach(() => {
  stopClock();
  FakeEventSource.opened.length = 0;
  store = new Store();
  states = [];
  feed = new Feed(store, (isLive) => states.push(isLive));
  feed.connect();
});
afterEach(startClock);

const latest = () => FakeEventSource.opened.at(-1);

test("events reach the store", () => {
  latest().send("snapshot", { workspaces: [workspace(), workspace({ id: "2" })] });
  latest().send("workspace_updated", workspace({ name: "renamed", version: 2 }));
  latest().send("workspace_deleted", { id: "2" });
  assert.deepEqual([...store.workspaces.values()].map(({ name }) => name), ["renamed"]);
  assert.deepEqual(states, [true]);
});

test("a short interruption is not reported", () => {
  latest().send("heartbeat", {});
  latest().fail({ closed: false });
  advance(1000);
  latest().send("heartbeat", {});
  advance(1000);
  assert.deepEqual(states, [true]);
  assert.equal(FakeEventSource.opened.length, 1);
});

test("a long interruption is reported once", () => {
  latest().send("heartbeat", {});
  latest().fail({ closed: false });
  advance(1500);
  latest().fail({ closed: false });
  advance(1500);
  assert.deepEqual(states, [true, false]);
});

test("after an error response it connects again", async () => {
  latest().fail({ closed: true });
  respond(200, SESSION);
  advance(2000);
  await settle();
  assert.equal(FakeEventSource.opened.length, 2);
});

test("while the server is away it waits longer each time", async () => {
  latest().fail({ closed: true });
  for (const failures of [2, 3, 4]) {
    respond(0);
    advance(15000 * 1.25);
    await settle();
    assert.equal(feed.failures, failures);
  }
  assert.equal(FakeEventSource.opened.length, 1);
  respond(200, SESSION);
  advance(15000 * 1.25);
  await settle();
  latest().send("heartbeat", {});
  assert.equal(feed.failures, 0);
});

test("silence means that the connection is dead", () => {
  latest().send("heartbeat", {});
  advance(75000);
  assert.deepEqual(states, [true, false]);
  assert.equal(FakeEventSource.opened.length, 2);
});

test("the delay grows up to a limit and is spread", () => {
  assert.deepEqual([1, 2, 3, 9].map((failures) => reconnectDelay(failures, 0.5)), [1000, 2000, 4000, 15000]);
  assert.equal(reconnectDelay(1, 0), 750);
});
