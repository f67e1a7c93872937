/** The badge that says where a workspace is. */

import { badgeOf } from "../describe.js";
import { h, say } from "../dom.js";

export function badge() {
  return h("span", { class: "badge" });
}

export function updateBadge(node, workspace) {
  const { label, tone } = badgeOf(workspace);
  say(node, label);
  if (node.dataset.tone !== tone) node.dataset.tone = tone;
}
