"use strict";
(() => {
  const main = document.querySelector("main");
  const { progress: source, reload, address, thenOpen } = main.dataset;
  const part = (name) => main.querySelector(`[data-part="${name}"]`);
  const TRIES = "codehub:tries";
  const FORGET_MS = 60000, LONGEST_S = 20, WINDOW_MS = 8000, SILENCE_MS = 5000, PATIENCE_MS = 1500;

  for (const time of document.querySelectorAll("time")) {
    const when = new Date(time.dateTime);
    const year = when.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
    const day = when.toLocaleDateString("en-GB", { day: "numeric", month: "long", ...year });
    time.textContent = `${day}, ${when.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}`;
  }

  // A second click must not post a second time; coming back makes the buttons work again.
  const buttons = document.querySelectorAll("form button");
  const able = (can) => buttons.forEach((button) => { button.disabled = !can; });
  addEventListener("submit", () => setTimeout(able, 0, false));
  addEventListener("pageshow", () => able(true));

  let stream, leaving = false;
  function leave() {
    if (leaving) return;
    leaving = true;
    if (stream) stream.close();
    // The answer to a form has no address of its own: a reload would send the form again.
    if (address && location.pathname.includes("/.codehub/")) location.replace(address);
    else location.reload();
  }
  // A reload may wake the workspace, so nobody's hidden tab does that by itself.
  function leaveOnceSeen() {
    if (document.hidden) document.addEventListener("visibilitychange", leave, { once: true });
    else leave();
  }
  function leaveLater(first) {
    const [tries, at] = (sessionStorage.getItem(TRIES) || "0 0").split(" ").map(Number);
    const again = Date.now() - at < FORGET_MS ? tries : 0;
    sessionStorage.setItem(TRIES, `${again + 1} ${Date.now()}`);
    setTimeout(leaveOnceSeen, Math.min(first * 1.4 ** again, LONGEST_S) * (800 + 400 * Math.random()));
  }
  if (reload) leaveLater(Number(reload));
  if (!source) return;

  const bar = document.getElementById("bar");
  const skew = Date.parse(main.dataset.now) - Date.now();
  let since = main.dataset.since, latest, samples = [];

  function size(count) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0;
    while (count >= 999.5 && unit < units.length - 1) { count /= 1000; unit += 1; }
    return `${count.toFixed(unit && count < 10 ? 1 : 0)} ${units[unit]}`;
  }
  function duration(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
  }
  function transfer({ done, total }) {
    const [first, last] = [samples[0], samples[samples.length - 1]];
    const rate = (last.done - first.done) / (last.at - first.at) * 1000;
    const words = [total ? `${size(done)} of ${size(total)}` : size(done)];
    if (rate > 0 && Date.now() - last.at < SILENCE_MS) {
      words.push(`${size(rate)}/s`);
      if (total > done) words.push(`${duration(Math.ceil((total - done) / rate))} left`);
    }
    return words.join(" · ");
  }
  const steps = JSON.parse(main.dataset.steps);
  function named(text) {
    const step = steps[latest?.step];
    return step ? `${step} · ${text}` : text;
  }
  function draw() {
    const elapsed = since ? (Date.now() + skew - Date.parse(since)) / 1000 : NaN;
    const moving = latest && latest.unit === "bytes" && (latest.done || latest.total);
    if (moving) part("figures").textContent = named(transfer(latest));
    else if (latest || !bar.hasAttribute("value")) part("figures").textContent = since ? named(`${duration(elapsed)} so far`) : "";
    part("slow").hidden = moving || !(elapsed > main.dataset.slowAfter);
  }
  function measure({ step, done, total, unit }) {
    const now = Date.now(), last = samples[samples.length - 1];
    if (last && (last.step !== step || last.done > done)) samples = [];
    samples = [...samples.filter(({ at }) => now - at < WINDOW_MS), { at: now, done, step }];
    if (total && unit !== "seconds") { bar.max = total; bar.value = Math.min(done, total); }
    else bar.removeAttribute("value");
  }
  function reveal(state) {
    for (const each of main.querySelectorAll("[data-state]")) each.hidden = each.dataset.state !== state;
    const shown = main.querySelector("[data-state]:not([hidden]) h1");
    if (shown) document.title = `${shown.textContent} · ${main.querySelector(".name").textContent} · CodeHub`;
  }
  function end({ phase, needs_person: needsPerson }) {
    if (needsPerson || thenOpen) return leave();
    stream.close();
    clearInterval(ticking);
    part("activity").hidden = true;
    main.querySelector(".icon").classList.remove("working");
    part("again").hidden = phase.startsWith("DELET");
    reveal(`IS_${phase}`);
  }
  function see(seen) {
    sessionStorage.removeItem(TRIES);
    if (seen.open) return leave();
    if (seen.settled) return end(seen);
    reveal(seen.under_way);
    if (seen.since !== latest?.since) samples = [];
    [since, latest] = [seen.since, seen];
    measure(seen);
    draw();
  }

  const ticking = setInterval(draw, 1000);
  let interrupted;
  const note = (text) => { clearTimeout(interrupted); part("note").textContent = text; };
  stream = new EventSource(source);
  stream.addEventListener("open", () => note(""));
  stream.addEventListener("progress", (event) => see(JSON.parse(event.data)));
  stream.addEventListener("error", () => {
    clearTimeout(interrupted);
    interrupted = setTimeout(note, PATIENCE_MS, "Reconnecting…");
    if (stream.readyState === EventSource.CLOSED) leaveLater(3);
  });
})();
