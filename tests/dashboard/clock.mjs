/** A clock that tests move: `Date.now` and `setTimeout`. Node 18 cannot mock the date. */

const real = { now: Date.now, setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
let time = 0, timers = [];

/** Stop the clock at this time, in milliseconds. */
export function stopClock(at = 0) {
  time = at;
  timers = [];
  Date.now = () => time;
  globalThis.setTimeout = (action, delay = 0, ...values) => {
    const timer = { at: time + delay, action: () => action(...values) };
    timers.push(timer);
    return timer;
  };
  globalThis.clearTimeout = (timer) => { timers = timers.filter((each) => each !== timer); };
}

/** Move the clock, and run the timers that expire. */
export function advance(milliseconds) {
  const end = time + milliseconds;
  for (let timer = next(end); timer; timer = next(end)) {
    clearTimeout(timer);
    time = timer.at;
    timer.action();
  }
  time = end;
}

export function startClock() {
  Date.now = real.now;
  globalThis.setTimeout = real.setTimeout;
  globalThis.clearTimeout = real.clearTimeout;
}

function next(end) {
  return timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
}
