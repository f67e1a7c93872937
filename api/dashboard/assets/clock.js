/** Server time, because the clock of this computer may be wrong. */

let skew = 0;

/**
 * Learn the server's time from a Date header. It has whole seconds, so a small difference counts as none.
 * @param {string | null} date
 */
export function noteServerTime(date) {
  const difference = Date.parse(date ?? "") - Date.now();
  if (!Number.isNaN(difference)) skew = Math.abs(difference) < 2000 ? 0 : difference;
}

/** Return the server's time in milliseconds. */
export function now() {
  return Date.now() + skew;
}

/**
 * Call at this interval and when the tab becomes visible, but never while it is hidden.
 * @param {number} milliseconds
 * @param {() => unknown} action
 */
export function every(milliseconds, action) {
  const tick = () => { if (!document.hidden) action(); };
  document.addEventListener("visibilitychange", tick);
  return setInterval(tick, milliseconds);
}
