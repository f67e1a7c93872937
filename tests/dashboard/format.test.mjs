import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  ago, ahead, capitalize, duration, moment, preciseDuration, roundDuration, size,
} from "../../api/dashboard/assets/format.js";
import { startClock, stopClock } from "./clock.mjs";

const NOON = new Date(2026, 6, 1, 12, 0).getTime();
const MINUTE = 60, HOUR = 3600, DAY = 86400;

/** @param {number} seconds */
const later = (seconds) => new Date(NOON + seconds * 1000).toISOString();

before(() => stopClock(NOON));
after(startClock);

for (const [bytes, text] of [
  [0, "0 B"], [999, "999 B"], [1000, "1.0 kB"], [9_940_000, "9.9 MB"], [312_400_000, "312 MB"],
  [999_600_000, "1.0 GB"], [5e15, "5000 TB"],
]) test(`${bytes} bytes are ${text}`, () => assert.equal(size(bytes), text));

for (const [seconds, text] of [[-3, "0 s"], [59.9, "59 s"], [200, "3 min 20 s"], [7500, "2 h 5 min"]]) {
  test(`${seconds} seconds take ${text}`, () => assert.equal(duration(seconds), text));
}

test("short durations have a decimal", () => {
  assert.equal(preciseDuration(0), "0.1 s");
  assert.equal(preciseDuration(0.44), "0.4 s");
  assert.equal(preciseDuration(12.7), "12 s");
});

for (const [seconds, text] of [
  [600, "10 min"], [3 * HOUR, "3 h"], [DAY, "1 day"], [7 * DAY, "7 days"], [90, "1 min 30 s"],
  [315_360_000, "never"],
]) test(`a setting of ${seconds} seconds reads ${text}`, () => assert.equal(roundDuration(seconds), text));

test("the past", () => {
  assert.equal(ago(null), "never");
  assert.equal(ago(later(-30)), "just now");
  assert.equal(ago(later(-5 * MINUTE)), "5 min ago");
  assert.equal(ago(later(-3 * HOUR)), "3 h ago");
  assert.equal(ago(later(-DAY)), "yesterday 12:00");
});

test("the future", () => {
  assert.equal(ahead(later(2)), "any moment now");
  assert.equal(ahead(later(30)), "in 30 s");
  assert.equal(ahead(later(8 * MINUTE)), "in 8 min");
  assert.equal(ahead(later(2 * HOUR)), "at 14:00");
  assert.equal(ahead(later(DAY)), "tomorrow 12:00");
});

test("a date has its year only if it is another one", () => {
  assert.equal(moment(new Date(2026, 4, 3, 14, 2).getTime()), "3 May, 14:02");
  assert.equal(moment(new Date(2025, 4, 3, 14, 2).getTime()), "3 May 2025, 14:02");
});

test("only the first letter becomes a capital", () => assert.equal(capitalize("go to it"), "Go to it"));
