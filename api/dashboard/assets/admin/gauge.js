/** How much of a limit is taken. */

import { h } from "../dom.js";
import { meter } from "../components/meter.js";

export function gauge(label, taken, most) {
  const bar = meter(`${label}: ${taken} of ${most} running`, taken, most);
  bar.toggleAttribute("data-full", taken >= most);
  return h("div", { class: "gauge" }, h("p", {}, h("span", {}, label), h("strong", {}, `${taken} of ${most}`)), bar);
}
