"use strict";

/**
 * @typedef {object} Progress
 * @property {boolean} open whether the IDE is ready
 * @property {boolean} settled
 * @property {boolean} needs_person
 * @property {string} phase
 * @property {string} under_way
 * @property {string | null} since
 * @property {string | null} step
 * @property {number} done
 * @property {number | null} total
 * @property {string | null} unit
 */

(() => {
  const main = /** @type {HTMLElement} */ (document.querySelector("main"));
  const { progress: source, reload, address, thenOpen } = main.dataset;
  const ATTEMPTS = "codehub:attempts", FORGET_MS = 60000, LONGEST_SECONDS = 20;
  const WINDOW_MS = 8000, SILENCE_MS = 5000, PATIENCE_MS = 1500;

  for (const time of document.querySelectorAll("time")) time.textContent = localTime(new Date(time.dateTime));

  // A second click must not send the form again. Coming back enables the buttons.
  /** @type {NodeListOf<HTMLButtonElement>} */
  const buttons = document.querySelectorAll("form button");
  /** @param {boolean} enabled */
  const enable = (enabled) => buttons.forEach((button) => { button.disabled = !enabled; });
  addEventListener("submit", () => setTimeout(enable, 0, false));
  addEventListener("pageshow", () => enable(true));

  if (reload) leaveLater(Number(reload));
  if (source) follow(source);

  /** @param {Date} date */
  function localTime(date) {
    const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
    const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "long", year });
    return `${day}, ${date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}`;
  }

  function leave() {
    // The response to a form has no address of its own: reloading it would send the form again.
    if (address && location.pathname.includes("/.codehub/")) location.replace(address);
    else location.reload();
  }

  /** Loading the page may start the workspace, so a hidden tab never does that by itself. */
  function leaveOnceVisible() {
    if (document.hidden) document.addEventListener("visibilitychange", leave, { once: true });
    else leave();
  }

  /** @param {number} seconds grows with each attempt in a row */
  function leaveLater(seconds) {
    const [count, at] = (sessionStorage.getItem(ATTEMPTS) || "0 0").split(" ").map(Number);
    const attempts = Date.now() - at < FORGET_MS ? count : 0;
    sessionStorage.setItem(ATTEMPTS, `${attempts + 1} ${Date.now()}`);
    const delay = Math.min(seconds * 1.4 ** attempts, LONGEST_SECONDS);
    setTimeout(leaveOnceVisible, delay * (800 + 400 * Math.random()));
  }

  /** @param {string} url */
  function follow(url) {
    const bar = /** @type {HTMLProgressElement} */ (document.getElementById("bar"));
    const skew = Date.parse(main.dataset.now ?? "") - Date.now();
    const slowAfter = Number(main.dataset.slowAfter);
    /** @type {Record<string, string>} */
    const steps = JSON.parse(main.dataset.steps ?? "{}");
    let since = main.dataset.since || null;
    /** @type {Progress | undefined} */
    let latest;
    /** @type {{ at: number, done: number, step: string | null }[]} */
    let samples = [];
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let interruption;
    let isLeaving = false;
    const stream = new EventSource(url);
    const ticking = setInterval(draw, 1000);
    stream.addEventListener("open", () => setNote(""));
    stream.addEventListener("progress", ({ data }) => handle(JSON.parse(data)));
    stream.addEventListener("error", () => {
      clearTimeout(interruption);
      interruption = setTimeout(setNote, PATIENCE_MS, "Reconnecting…");
      if (stream.readyState === EventSource.CLOSED) leaveLater(3);
    });

    /** @param {Progress} progress */
    function handle(progress) {
      sessionStorage.removeItem(ATTEMPTS);
      if (progress.open) stopAndLeave();
      else if (progress.settled) end(progress);
      else update(progress);
    }

    function stopAndLeave() {
      if (!isLeaving) leave();
      isLeaving = true;
      stream.close();
    }

    /** @param {Progress} progress */
    function end({ phase, needs_person: failed }) {
      if (failed || thenOpen) {
        stopAndLeave();
        return;
      }
      stream.close();
      clearInterval(ticking);
      part("activity").hidden = true;
      main.querySelector(".icon")?.classList.remove("working");
      part("again").hidden = phase.startsWith("DELET");
      reveal(`IS_${phase}`);
    }

    /** @param {Progress} progress */
    function update(progress) {
      reveal(progress.under_way);
      if (progress.since !== latest?.since) samples = [];
      since = progress.since;
      latest = progress;
      measure(progress);
      draw();
    }

    /** @param {Progress} progress */
    function measure({ step, done, total, unit }) {
      const now = Date.now(), last = samples[samples.length - 1];
      if (last && (last.step !== step || last.done > done)) samples = [];
      samples = [...samples.filter(({ at }) => now - at < WINDOW_MS), { at: now, done, step }];
      if (total && unit !== "seconds") {
        bar.max = total;
        bar.value = Math.min(done, total);
      } else bar.removeAttribute("value");
    }

    function draw() {
      const elapsed = since ? (Date.now() + skew - Date.parse(since)) / 1000 : NaN;
      const isTransfer = latest?.unit === "bytes" && Boolean(latest.done || latest.total);
      part("slow").hidden = isTransfer || !(elapsed > slowAfter);
      if (latest && isTransfer) part("figures").textContent = withStep(transfer(latest));
      else if (latest || !bar.hasAttribute("value")) {
        part("figures").textContent = since ? withStep(`${duration(elapsed)} so far`) : "";
      }
    }

    /** @param {string} text */
    function withStep(text) {
      const step = steps[latest?.step ?? ""];
      return step ? `${step} · ${text}` : text;
    }

    /** @param {Progress} progress */
    function transfer({ done, total }) {
      const first = samples[0], last = samples[samples.length - 1];
      const rate = (last.done - first.done) / (last.at - first.at) * 1000;
      const texts = [total ? `${size(done)} of ${size(total)}` : size(done)];
      if (rate > 0 && Date.now() - last.at < SILENCE_MS) {
        texts.push(`${size(rate)}/s`);
        if (total && total > done) texts.push(`${duration(Math.ceil((total - done) / rate))} left`);
      }
      return texts.join(" · ");
    }

    /** @param {string} text */
    function setNote(text) {
      clearTimeout(interruption);
      part("note").textContent = text;
    }
  }

  /** @param {string} name */
  function part(name) {
    return /** @type {HTMLElement} */ (main.querySelector(`[data-part="${name}"]`));
  }

  /** @param {string} state */
  function reveal(state) {
    /** @type {NodeListOf<HTMLElement>} */
    const sections = main.querySelectorAll("[data-state]");
    for (const each of sections) each.hidden = each.dataset.state !== state;
    const headline = main.querySelector("[data-state]:not([hidden]) h1");
    const name = main.querySelector(".name");
    if (headline) document.title = `${headline.textContent} · ${name?.textContent} · CodeHub`;
  }

  /** @param {number} bytes */
  function size(bytes) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let value = bytes, unit = 0;
    while (value >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
    return `${value.toFixed(unit && value < 10 ? 1 : 0)} ${units[unit]}`;
  }

  /** @param {number} seconds */
  function duration(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
  }
})();
