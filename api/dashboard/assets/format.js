/** Sizes, durations and moments as people write them; the proxy's pages write them in the same way. */

import { now } from "./clock.js";

const UNITS = ["B", "kB", "MB", "GB", "TB"];
const MINUTE = 60, HOUR = 3600, DAY = 86400;
const CLOCK = { hour: "2-digit", minute: "2-digit" };
const LOCALE = "en-GB";

export function size(count) {
  let value = count, unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) { value /= 1000; unit += 1; }
  return `${value.toFixed(unit && value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** 4 s, 3 min 20 s, 2 h 5 min. */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min ${whole % MINUTE} s`;
  return `${Math.floor(whole / HOUR)} h ${Math.floor((whole % HOUR) / MINUTE)} min`;
}

/** The same, but also short ones tell something: 0.4 s. */
export function measured(seconds) {
  return seconds < 10 ? `${Math.max(0.1, seconds).toFixed(1)} s` : duration(seconds);
}

/** A length of time that somebody chose: 10 min, 3 h, 7 days. */
export function span(seconds) {
  if (seconds >= 10 * 365 * DAY) return "never";
  for (const [length, word] of [[DAY, "day"], [HOUR, "h"], [MINUTE, "min"]]) {
    if (seconds >= length && seconds % length === 0) {
      const count = seconds / length;
      return word === "day" ? `${count} day${count === 1 ? "" : "s"}` : `${count} ${word}`;
    }
  }
  return duration(seconds);
}

/** just now, 5 min ago, 3 h ago, yesterday 14:02, 3 May, 14:02. */
export function ago(when) {
  if (!when) return "never";
  const seconds = (now() - Date.parse(when)) / 1000;
  if (seconds < MINUTE) return "just now";
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ago`;
  if (seconds < 12 * HOUR) return `${Math.floor(seconds / HOUR)} h ago`;
  return moment(when);
}

/** in 8 min, at 14:00, tomorrow 14:00, on 3 May, 14:00. */
export function ahead(when) {
  const seconds = (Date.parse(when) - now()) / 1000;
  if (seconds < 5) return "any moment now";
  if (seconds < MINUTE) return `in ${Math.ceil(seconds)} s`;
  if (seconds < HOUR) return `in ${Math.round(seconds / MINUTE)} min`;
  const words = moment(when);
  return words.startsWith("today") ? `at ${words.slice(6)}` : words;
}

/** today 14:02, yesterday 14:02, tomorrow 14:02, 3 May, 14:02. */
export function moment(when) {
  const date = new Date(when), today = new Date(now());
  const time = date.toLocaleTimeString(LOCALE, CLOCK);
  const days = Math.round((midnight(date) - midnight(today)) / (DAY * 1000));
  const near = { 0: "today", "-1": "yesterday", 1: "tomorrow" }[days];
  if (near) return `${near} ${time}`;
  const year = date.getFullYear() === today.getFullYear() ? {} : { year: "numeric" };
  return `${date.toLocaleDateString(LOCALE, { day: "numeric", month: "short", ...year })}, ${time}`;
}

/** With seconds, for those who compare with a log. */
export function exactly(when) {
  return new Date(when).toLocaleString(LOCALE, { dateStyle: "medium", timeStyle: "medium" });
}

function midnight(date) {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}
