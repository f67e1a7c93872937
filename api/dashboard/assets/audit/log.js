/** The entries of the audit log, with filters, pages and an export. */

import { field, select } from "../components/forms.js";
import { PagedTable } from "../components/paged_table.js";
import { h } from "../dom.js";
import { exactTime } from "../format.js";
import { link } from "../routes.js";
import { AUDIT_ACTIONS } from "../words.js";

/** @import { AuditItem } from "../types.js" */

/** @type {[string, string][]} */
const OUTCOMES = [["", "Any outcome"], ["success", "Done"], ["failure", "Failed"]];

export function auditLog() {
  const all = h("a", { class: "button second", download: true }, "Export as JSON lines");
  return new PagedTable({
    path: "/admin/audit",
    columns: ["Time", "Who", "What", "About", "Address"],
    filters: filters(),
    row,
    onQuery: (wanted) => all.setAttribute("href", link(`/api/v1/admin/audit/export?${wanted}`)),
    buttons: [all],
  });
}

function filters() {
  /** @type {[string, string][]} */
  const actions = [["", "Anything"], ...Object.entries(AUDIT_ACTIONS)];
  return [
    field("Who", h("input", { name: "actor", type: "search", maxlength: 64, autocapitalize: "none" })),
    field("What", select("action", actions, "")),
    field("Outcome", select("outcome", OUTCOMES, "")),
    field("From", h("input", { name: "since", type: "datetime-local" })),
    field("Until", h("input", { name: "until", type: "datetime-local" })),
    field("Text", h("input", { name: "q", type: "search", maxlength: 100,
      placeholder: "Name, address, detail" })),
  ];
}

/** @param {AuditItem} entry */
function row(entry) {
  const what = AUDIT_ACTIONS[entry.action] ?? entry.action.replaceAll("_", " ");
  const details = Object.entries(entry.detail)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${value ?? "none"}`).join(", ");
  return h("tr", { "data-outcome": entry.outcome },
    h("td", {}, h("time", { datetime: entry.at }, exactTime(entry.at))),
    h("td", {}, h("strong", {}, entry.actor)),
    h("td", {}, what, entry.outcome === "failure" && h("span", { class: "tag" }, "failed")),
    h("td", {}, entry.target ?? entry.target_id ?? "", details && h("p", { class: "quiet" }, details)),
    h("td", {}, entry.address ?? ""));
}
