/** The archives of a workspace. */

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { exactly, moment, size } from "../format.js";
import { section } from "../components/section.js";

export class Archives {
  constructor(id) {
    this.id = id;
    this.list = h("ul", { class: "plain-list archives" });
    this.element = section("Archives", this.list);
  }

  async load() {
    const { items } = await get(`/workspaces/${this.id}/archives`);
    replace(this.list, items.length ? items.map(item) : h("li", { class: "quiet" }, "None yet. One is made when it is archived or deleted."));
  }
}

function item(archive) {
  const state = archive.removed_at ? "removed" : archive.current ? "current" : archive.orphan_since ? "to be removed" : "kept";
  const size_ = archive.size_bytes === null ? "size unknown" : size(archive.size_bytes);
  const verified = archive.verified_at ? `verified ${moment(archive.verified_at)}` : "not verified yet";
  return h("li", { class: archive.removed_at ? "removed" : null },
    h("div", {}, h("p", {}, h("time", { datetime: archive.created_at, title: exactly(archive.created_at) }, moment(archive.created_at)), ` · ${size_}`),
      h("p", { class: "quiet" }, verified),
      archive.sha256 ? h("p", { class: "digest", title: `sha256 ${archive.sha256}` }, `sha256 ${archive.sha256}`) : null),
    h("span", { class: "tag" }, state));
}
