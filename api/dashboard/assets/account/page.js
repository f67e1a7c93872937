/** Your account. */

import { reportErrors } from "../components/toast.js";
import { h } from "../dom.js";
import { start } from "../page.js";
import { passwordSection } from "./password.js";
import { Sessions } from "./sessions.js";
import { Tokens } from "./tokens.js";

start(async ({ main, user }) => {
  const tokens = new Tokens(), sessions = new Sessions();
  const password = passwordSection(user.username, () => reportErrors(() => sessions.load()));
  const role = user.role === "admin" ? ", an administrator" : "";
  main.append(
    h("div", { class: "head" }, h("div", {}, h("h1", {}, "Account"),
      h("p", { class: "quiet" }, `Signed in as ${user.username}${role}.`))),
    h("div", { class: "columns even" },
      h("div", {}, tokens.element), h("div", {}, sessions.element, password)));
  await reportErrors(() => Promise.all([tokens.load(), sessions.load()]));
});
