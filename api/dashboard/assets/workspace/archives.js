/** The archives of a workspace. */

import { get } from "../api.js";
import { section } from "../components/section.js";
import { archiveSize, archiveVerification } from "../describe.js";
import { h, replaceChildren } from "../dom.js";
import { exactTime, moment } from "../format.js";

/** @import { ArchiveItem, ArchiveList } from "../types.js" */

const NONE = "None yet. CodeHub makes one when the workspace is archived or deleted.";

export class Archives {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.list = h("ul", { class: "plain-list archives" });
    this.element = section("Archives", this.list);
  }

  async load() {
    /** @type {ArchiveList} */
    const { items } = await get(`/workspaces/${this.id}/archives`);
    replaceChildren(this.list, items.length ? items.map(item) : h("li", { class: "quiet" }, NONE));
  }
}

/** @param {ArchiveItem} archive */
function item(archive) {
  const { created_at: created, removed_at: removed, sha256 } = archive;
  const time = h("time", { datetime: created, title: exactTime(created) }, moment(created));
  return h("li", { class: removed && "removed" },
    h("div", {}, h("p", {}, time, ` · ${archiveSize(archive)}`),
      h("p", { class: "quiet" }, archiveVerification(archive)),
      sha256 && h("p", { class: "digest", title: `sha256 ${sha256}` }, `sha256 ${sha256}`)),
    h("span", { class: "tag" }, stateOf(archive)));
}

/** @param {ArchiveItem} archive */
function stateOf({ removed_at: removed, current, orphan_since: orphan }) {
  if (removed) return "removed";
  if (current) return "current";
  return orphan ? "to be removed" : "kept";
}
