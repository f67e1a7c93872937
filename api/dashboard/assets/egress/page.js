/** The connections of all workspaces, for administrators. */

import { reportErrors } from "../components/toast.js";
import { h } from "../dom.js";
import { notice, start } from "../page.js";
import { link } from "../routes.js";
import { egressLog } from "./log.js";

start(async ({ main, user }) => {
  if (user.role !== "admin") {
    main.append(notice("For administrators", "Your account cannot see this page."));
    return;
  }
  const log = egressLog();
  main.append(
    h("p", { class: "crumb" }, h("a", { href: link("/admin") }, "Administration")),
    h("div", { class: "head" }, h("div", {}, h("h1", {}, "Connections"),
      h("p", { class: "quiet" }, "Names that workspaces connected to, or were refused, by hour."))),
    log.element);
  await reportErrors(() => log.load());
});
