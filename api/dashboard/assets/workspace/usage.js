/** When it was used in the last 24 hours, as small columns. */

import { get } from "../api.js";
import { now } from "../clock.js";
import { h, replace, svg } from "../dom.js";
import { duration } from "../format.js";
import { section } from "../components/section.js";

const WIDTH = 288, HEIGHT = 40, BASELINE = 3;

export class Sparkline {
  constructor(id) {
    this.id = id;
    this.drawing = h("div", { class: "sparkline" });
    this.words = h("p", { class: "quiet" });
    this.element = section("Last 24 hours", this.drawing, this.words);
  }

  async load() {
    const activity = await get(`/workspaces/${this.id}/activity`);
    const summary = summarize(activity);
    replace(this.drawing, draw(bucketsOf(activity), summary));
    replace(this.words, summary);
  }
}

function summarize({ used, bucket_seconds: seconds }) {
  return used.length ? `In use for about ${duration(used.length * seconds).replace(" 0 s", "")}.` : "Nobody used it.";
}

/** For each stretch of time since the beginning, whether it was used. */
function bucketsOf({ since, used, bucket_seconds: seconds }) {
  const began = Date.parse(since), length = seconds * 1000;
  const buckets = new Array(Math.max(1, Math.ceil((now() - began) / length))).fill(false);
  for (const at of used) buckets[Math.round((Date.parse(at) - began) / length)] = true;
  return buckets;
}

function draw(buckets, summary) {
  const width = WIDTH / buckets.length;
  const columns = buckets.map((used, place) => {
    const height = used ? HEIGHT : BASELINE;
    return svg("rect", { class: used ? "used" : "idle", x: (place * width).toFixed(2), y: HEIGHT - height,
      width: (width - 0.6).toFixed(2), height, rx: 1 });
  });
  return [svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": summary }, columns),
    h("p", { class: "axis quiet", "aria-hidden": "true" }, h("span", {}, "24 h ago"), h("span", {}, "now"))];
}
