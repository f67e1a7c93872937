/** The audit log, for administrators. */

import { reportErrors } from "../components/toast.js";
import { h } from "../dom.js";
import { notice, start } from "../page.js";
import { link } from "../routes.js";
import { auditLog } from "./log.js";

start(async ({ main, user }) => {
  if (user.role !== "admin") {
    main.append(notice("For administrators", "Your account cannot see this page."));
    return;
  }
  const log = auditLog();
  main.append(
    h("p", { class: "crumb" }, h("a", { href: link("/admin") }, "Administration")),
    h("div", { class: "head" }, h("div", {}, h("h1", {}, "Audit log"),
      h("p", { class: "quiet" }, "Sign-ins, tokens, and changes to accounts. Nobody can change an entry."))),
    log.element);
  await reportErrors(() => log.load());
});
