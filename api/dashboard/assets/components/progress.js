/** How far an operation has come: bytes and their rate where bytes move, else the step and the time so far. */

import { now } from "../clock.js";
import { isBusy } from "../describe.js";
import { h, say, toggle } from "../dom.js";
import { duration, moment, size } from "../format.js";
import { STEPS } from "../words.js";

const SILENCE_MS = 5000;
// The headline says as much.
const OBVIOUS = new Set(["upload", "download"]);

export class ProgressView {
  constructor() {
    this.bar = h("progress", { "aria-label": "Progress" });
    this.words = h("p", { class: "figures" });
    this.element = h("div", { class: "progress", hidden: true }, this.bar, this.words);
  }

  update(workspace, progress) {
    const busy = isBusy(workspace);
    toggle(this.element, busy);
    if (!busy) return;
    const share = progress && progress.total && progress.unit !== "seconds";
    if (share) {
      this.bar.max = progress.total;
      this.bar.value = Math.min(progress.done, progress.total);
    } else this.bar.removeAttribute("value");
    say(this.words, figures(workspace, progress));
  }
}

/** 120 MB of 312 MB · 40 MB/s · 5 s left; or Pulling the image · 120 MB of 312 MB. */
export function figures(workspace, progress) {
  if (progress?.unit === "bytes" && (progress.done || progress.total)) return transfer(progress);
  if (workspace.waiting) return `${workspace.waiting.message} Waiting since ${moment(workspace.waiting.since)}.`;
  const since = workspace.operation_started_at;
  const elapsed = since ? `${duration(Math.floor((now() - Date.parse(since)) / 1000))} so far` : "Waiting for its turn";
  const step = progress?.unit === "seconds" ? undefined : STEPS[progress?.step];
  return step ? `${step} · ${elapsed}` : elapsed;
}

function transfer({ step, done, total, samples }) {
  const [first, last] = [samples[0], samples.at(-1)];
  const rate = ((last.done - first.done) / (last.at - first.at)) * 1000;
  const words = [total ? `${size(done)} of ${size(total)}` : size(done)];
  if (STEPS[step] && !OBVIOUS.has(step)) words.unshift(STEPS[step]);
  if (rate > 0 && Date.now() - last.at < SILENCE_MS) {
    words.push(`${size(rate)}/s`);
    if (total > done) words.push(`${duration(Math.ceil((total - done) / rate))} left`);
  }
  return words.join(" · ");
}
