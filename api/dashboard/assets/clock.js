/** The server's time: a computer's own clock may be wrong, and "in 8 min" shall not be. */

let skew = 0;

export function noteServerTime(date) {
  const there = Date.parse(date ?? "");
  // The header has whole seconds, so a smaller difference is none.
  if (!Number.isNaN(there)) skew = Math.abs(there - Date.now()) < 2000 ? 0 : there - Date.now();
}

export function now() {
  return Date.now() + skew;
}

/** Call at once and then every so often, but never while nobody looks. */
export function every(milliseconds, act) {
  const tick = () => { if (!document.hidden) act(); };
  document.addEventListener("visibilitychange", tick);
  return setInterval(tick, milliseconds);
}
