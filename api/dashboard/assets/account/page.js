/** One's own account. */

import { passwordSection } from "./password.js";
import { Sessions } from "./sessions.js";
import { Tokens } from "./tokens.js";
import { h } from "../dom.js";
import { start } from "../page.js";
import { orTell } from "../components/toast.js";

start(async ({ main, user }) => {
  const [tokens, sessions] = [new Tokens(), new Sessions()];
  const password = passwordSection(user.username, () => orTell(() => sessions.load()));
  main.append(
    h("div", { class: "head" }, h("div", {}, h("h1", {}, "Account"),
      h("p", { class: "quiet" }, `Signed in as ${user.username}${user.role === "admin" ? ", an administrator" : ""}.`))),
    h("div", { class: "columns even" }, h("div", {}, tokens.element), h("div", {}, sessions.element, password)));
  await orTell(() => Promise.all([tokens.load(), sessions.load()]));
});
