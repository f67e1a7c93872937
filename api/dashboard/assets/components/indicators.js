/** Badges, meters and progress bars. */

import { now } from "../clock.js";
import { badgeOf, isBusy } from "../describe.js";
import { h, setText, setVisible } from "../dom.js";
import { duration, moment, size } from "../format.js";
import { STEPS } from "../words.js";

/** @import { MeasuredProgress } from "../store.js" */
/** @import { Workspace } from "../types.js" */

const SILENCE_MS = 5000;
// The operation on the badge says as much.
const OBVIOUS_STEPS = new Set(["upload", "download"]);

/** A badge with the state of a workspace. */
export function badge() {
  return h("span", { class: "badge" });
}

/**
 * @param {HTMLElement} node
 * @param {Workspace} workspace
 */
export function updateBadge(node, workspace) {
  const { label, tone } = badgeOf(workspace);
  setText(node, label);
  if (node.dataset.tone !== tone) node.dataset.tone = tone;
}

/**
 * A bar that shows a part of a whole. The browser's own meter looks different everywhere.
 * @param {string} label
 * @param {number} value
 * @param {number} max
 */
export function meter(label, value, max) {
  const part = h("span");
  part.style.width = `${(100 * Math.min(value, max)) / Math.max(max, 1e-9)}%`;
  return h("div", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": 0,
    "aria-valuemax": max, "aria-valuenow": Math.min(value, max) }, part);
}

/** The progress of the current operation; hidden while there is none. */
export class ProgressBar {
  constructor() {
    this.bar = h("progress", { "aria-label": "Progress" });
    this.text = h("p", { class: "figures" });
    this.element = h("div", { class: "progress", hidden: true }, this.bar, this.text);
  }

  /**
   * @param {Workspace} workspace
   * @param {MeasuredProgress | undefined} progress
   */
  update(workspace, progress) {
    const busy = isBusy(workspace);
    setVisible(this.element, busy);
    if (!busy) return;
    if (progress?.total && progress.unit !== "seconds") {
      this.bar.max = progress.total;
      this.bar.value = Math.min(progress.done, progress.total);
    } else this.bar.removeAttribute("value");
    setText(this.text, progressText(workspace, progress));
  }
}

/**
 * 120 MB of 312 MB · 40 MB/s · 5 s left; or: Launching the IDE · 3 s so far.
 * @param {Pick<Workspace, "waiting" | "operation_started_at">} workspace
 * @param {MeasuredProgress | undefined} progress
 */
export function progressText(workspace, progress) {
  if (progress?.unit === "bytes" && (progress.done || progress.total)) return transferText(progress);
  const { waiting, operation_started_at: since } = workspace;
  if (waiting) return `${waiting.message} Waiting since ${moment(waiting.since)}.`;
  const elapsed = since ? `${duration((now() - Date.parse(since)) / 1000)} so far` : "Waiting for its turn";
  const step = progress?.unit === "seconds" ? undefined : STEPS[progress?.step ?? ""];
  return step ? `${step} · ${elapsed}` : elapsed;
}

/** @param {MeasuredProgress} progress */
function transferText({ step, done, total, samples }) {
  const first = samples[0], last = samples[samples.length - 1];
  const rate = ((last.done - first.done) / (last.at - first.at)) * 1000;
  const parts = [total ? `${size(done)} of ${size(total)}` : size(done)];
  if (step && STEPS[step] && !OBVIOUS_STEPS.has(step)) parts.unshift(STEPS[step]);
  if (rate > 0 && Date.now() - last.at < SILENCE_MS) {
    parts.push(`${size(rate)}/s`);
    if (total && total > done) parts.push(`${duration(Math.ceil((total - done) / rate))} left`);
  }
  return parts.join(" · ");
}
