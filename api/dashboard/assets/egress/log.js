/** The names that workspaces connected to, with filters and pages. */

import { field, select } from "../components/forms.js";
import { PagedTable } from "../components/paged_table.js";
import { h } from "../dom.js";
import { exactTime } from "../format.js";
import { link } from "../routes.js";

/** @import { EgressItem } from "../types.js" */

/** @type {[string, string][]} */
const VERDICTS = [["", "All connections"], ["true", "Only refused"]];

export function egressLog() {
  return new PagedTable({
    path: "/admin/egress",
    columns: ["Hour", "Owner", "Workspace", "Name", "Count"],
    filters: [
      field("Owner", h("input", { name: "user", type: "search", maxlength: 64, autocapitalize: "none" })),
      field("Name", h("input", { name: "name", type: "search", maxlength: 100, autocapitalize: "none" })),
      field("Workspace", h("input", { name: "workspace", type: "search", minlength: 36, maxlength: 36,
        placeholder: "Its id" })),
      field("Outcome", select("refused", VERDICTS, "")),
    ],
    row,
  });
}

/** @param {EgressItem} entry */
function row({ hour, owner, workspace, workspace_id: id, name, port, verdict, count }) {
  const where = name === "*" ? "other names" : `${name}:${port}`;
  return h("tr", { "data-outcome": verdict === "refused" ? "failure" : "success" },
    h("td", {}, h("time", { datetime: hour }, exactTime(hour))),
    h("td", {}, h("strong", {}, owner ?? "")),
    h("td", {}, workspace ? h("a", { href: link(`/workspaces/${id}`) }, workspace) : id),
    h("td", {}, where, verdict === "refused" && h("span", { class: "tag" }, "refused")),
    h("td", {}, String(count)));
}
