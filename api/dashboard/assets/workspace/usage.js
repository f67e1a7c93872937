/** When the workspace was used in the last 24 hours, as a small chart. */

import { get } from "../api.js";
import { now } from "../clock.js";
import { section } from "../components/section.js";
import { h, replaceChildren, svg } from "../dom.js";
import { duration } from "../format.js";

/** @import { Activity } from "../types.js" */

const WIDTH = 288, HEIGHT = 40, BASELINE = 3;

export class Usage {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.chart = h("div", { class: "sparkline" });
    this.text = h("p", { class: "quiet" });
    this.element = section("Last 24 hours", this.chart, this.text);
  }

  async load() {
    /** @type {Activity} */
    const activity = await get(`/workspaces/${this.id}/activity`);
    const summary = summarize(activity);
    replaceChildren(this.chart, draw(bucketsOf(activity, now()), summary));
    replaceChildren(this.text, summary);
  }
}

/** @param {Activity} activity */
function summarize({ used, bucket_seconds: seconds }) {
  if (!used.length) return "Nobody used it.";
  return `In use for about ${duration(used.length * seconds).replace(" 0 s", "")}.`;
}

/**
 * Whether it was used, for each stretch of time up to now.
 * @param {Activity} activity
 * @param {number} time
 */
export function bucketsOf({ since, used, bucket_seconds: seconds }, time) {
  const began = Date.parse(since), length = seconds * 1000;
  const buckets = new Array(Math.max(1, Math.ceil((time - began) / length))).fill(false);
  for (const at of used) buckets[Math.round((Date.parse(at) - began) / length)] = true;
  return buckets;
}

/**
 * @param {boolean[]} buckets
 * @param {string} summary
 */
function draw(buckets, summary) {
  const width = WIDTH / buckets.length;
  const columns = buckets.map((used, index) => {
    const height = used ? HEIGHT : BASELINE;
    return svg("rect", { class: used ? "used" : "idle", x: (index * width).toFixed(2), y: HEIGHT - height,
      width: (width - 0.6).toFixed(2), height, rx: 1 });
  });
  const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
    "aria-label": summary }, columns);
  return [chart,
    h("p", { class: "axis quiet", "aria-hidden": "true" }, h("span", {}, "24 h ago"), h("span", {}, "now"))];
}
