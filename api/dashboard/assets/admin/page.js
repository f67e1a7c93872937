/** The administration. */

import { every } from "../clock.js";
import { reportErrors } from "../components/toast.js";
import { h } from "../dom.js";
import { notice, start } from "../page.js";
import { link } from "../routes.js";
import { Errors } from "./errors.js";
import { Status } from "./status.js";
import { Users } from "./users.js";
import { AllWorkspaces } from "./workspaces.js";

const REFRESH_MS = 10000;

start(async ({ main, user }) => {
  if (user.role !== "admin") {
    main.append(notice("For administrators", "Your account cannot see this page."));
    return;
  }
  const status = new Status(), errors = new Errors(), users = new Users(), workspaces = new AllWorkspaces();
  const logs = h("div", { class: "buttons" },
    h("a", { class: "button second", href: link("/admin/egress") }, "Connections"),
    h("a", { class: "button second", href: link("/admin/audit") }, "Audit log"));
  main.append(h("div", { class: "head" }, h("h1", {}, "Administration"), logs),
    h("div", { class: "columns even" },
      h("div", {}, errors.element, status.limits, status.phases, workspaces.element),
      h("div", {}, status.dependencies, status.sweeps, users.element)));
  const refresh = () => reportErrors(() => Promise.all([status.load(), errors.load()]));
  await reportErrors(() => Promise.all([refresh(), users.load(), workspaces.load()]));
  every(REFRESH_MS, refresh);
});
