/** Sizes, durations and times for people; the proxy's pages use the same formats. */

import { now } from "./clock.js";

const UNITS = ["B", "kB", "MB", "GB", "TB"];
const MINUTE = 60, HOUR = 3600, DAY = 86400, FOREVER = 10 * 365 * DAY;
const LOCALE = "en-GB";

/** @param {number} bytes */
export function size(bytes) {
  let value = bytes, unit = 0;
  // Not 1000: a number that rounds to 1000 belongs to the next unit.
  while (value >= 999.5 && unit < UNITS.length - 1) { value /= 1000; unit += 1; }
  return `${value.toFixed(unit && value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/**
 * 4 s, 3 min 20 s, 2 h 5 min.
 * @param {number} seconds
 */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min ${whole % MINUTE} s`;
  return `${Math.floor(whole / HOUR)} h ${Math.floor((whole % HOUR) / MINUTE)} min`;
}

/**
 * The same with a decimal below ten seconds: 0.4 s.
 * @param {number} seconds
 */
export function preciseDuration(seconds) {
  return seconds < 10 ? `${Math.max(0.1, seconds).toFixed(1)} s` : duration(seconds);
}

/**
 * A round length of time, such as a setting: 10 min, 3 h, 7 days, never.
 * @param {number} seconds
 */
export function roundDuration(seconds) {
  if (seconds >= FOREVER) return "never";
  if (seconds % DAY === 0) return seconds === DAY ? "1 day" : `${seconds / DAY} days`;
  if (seconds % HOUR === 0) return `${seconds / HOUR} h`;
  return seconds % MINUTE === 0 ? `${seconds / MINUTE} min` : duration(seconds);
}

/**
 * A time in the past: just now, 5 min ago, 3 h ago, yesterday 14:02, 3 May, 14:02.
 * @param {string | null} time
 */
export function ago(time) {
  if (!time) return "never";
  const seconds = (now() - Date.parse(time)) / 1000;
  if (seconds < MINUTE) return "just now";
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ago`;
  if (seconds < 12 * HOUR) return `${Math.floor(seconds / HOUR)} h ago`;
  return moment(time);
}

/**
 * A time in the future: in 8 min, at 14:00, tomorrow 14:00, 3 May, 14:00.
 * @param {string} time
 */
export function ahead(time) {
  const seconds = (Date.parse(time) - now()) / 1000;
  if (seconds < 5) return "any moment now";
  if (seconds < MINUTE) return `in ${Math.ceil(seconds)} s`;
  if (seconds < HOUR) return `in ${Math.round(seconds / MINUTE)} min`;
  const text = moment(time);
  return text.startsWith("today") ? `at ${text.slice(6)}` : text;
}

/**
 * A date and time: today 14:02, yesterday 14:02, tomorrow 14:02, 3 May, 14:02.
 * @param {string | number} time
 */
export function moment(time) {
  const date = new Date(time), today = new Date(now());
  const clock = date.toLocaleTimeString(LOCALE, { hour: "2-digit", minute: "2-digit" });
  const days = Math.round((midnight(date) - midnight(today)) / (DAY * 1000));
  const day = { 0: "today", "-1": "yesterday", 1: "tomorrow" }[days];
  if (day) return `${day} ${clock}`;
  const year = date.getFullYear() === today.getFullYear() ? undefined : "numeric";
  return `${date.toLocaleDateString(LOCALE, { day: "numeric", month: "short", year })}, ${clock}`;
}

/**
 * A date and time with seconds, to compare with a log.
 * @param {string} time
 */
export function exactTime(time) {
  return new Date(time).toLocaleString(LOCALE, { dateStyle: "medium", timeStyle: "medium" });
}

/** @param {string} text */
export function capitalize(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {Date} date */
function midnight(date) {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}
