import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Store } from "../../api/dashboard/assets/store.js";
import { advance, startClock, stopClock } from "./clock.mjs";
import { busy, workspace } from "./workspaces.mjs";

let store, heard;

beforeEach(() => {
  stopClock();
  store = new Store();
  heard = [];
  store.subscribe((changed) => heard.push([...changed]));
});
afterEach(startClock);

const progress = (fields) => ({
  id: "1", operation: "ARCHIVING", step: "upload", done: 0, total: 100, unit: "bytes", ...fields,
});

test("changes of one frame are told together", () => {
  store.put(workspace());
  store.put(workspace({ id: "2" }));
  advance(16);
  store.remove("2");
  advance(16);
  assert.deepEqual(heard, [["1", "2"], ["2"]]);
});

test("an older version never wins", () => {
  store.put(workspace({ version: 5, name: "new" }));
  store.put(workspace({ version: 4, name: "old" }));
  assert.equal(store.get("1").name, "new");
});

test("a snapshot removes what is not in it", () => {
  store.put(workspace());
  store.replaceAll([workspace({ id: "2" })]);
  assert.deepEqual([...store.workspaces.keys()], ["2"]);
  assert.equal(store.loaded, true);
});

test("progress keeps its samples while the step goes on", () => {
  store.put(busy({ operation: "ARCHIVING" }));
  store.putProgress(progress({ done: 10 }));
  advance(1000);
  store.putProgress(progress({ done: 30 }));
  assert.deepEqual(store.progress.get("1").samples, [{ at: 0, done: 10 }, { at: 1000, done: 30 }]);
  store.putProgress(progress({ step: "verify", done: 40 }));
  assert.equal(store.progress.get("1").samples.length, 1);
});

test("old samples are dropped", () => {
  store.put(busy({ operation: "ARCHIVING" }));
  store.putProgress(progress({ done: 10 }));
  advance(9000);
  store.putProgress(progress({ done: 30 }));
  assert.deepEqual(store.progress.get("1").samples, [{ at: 9000, done: 30 }]);
});

test("progress ends with its operation", () => {
  store.put(busy({ operation: "ARCHIVING" }));
  store.putProgress(progress());
  store.put(workspace({ version: 2 }));
  assert.equal(store.progress.size, 0);
  store.putProgress(progress({ done: 50 }));
  assert.equal(store.progress.size, 0);
});
