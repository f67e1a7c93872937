/** Your account. */

import { reportErrors } from "../components/toast.js";
import { h, setVisible } from "../dom.js";
import { start } from "../page.js";
import { AuthenticatorSection } from "./authenticator.js";
import { passwordSection } from "./password.js";
import { Sessions } from "./sessions.js";
import { Tokens } from "./tokens.js";

start(async ({ main, user }) => {
  const tokens = new Tokens(user.role === "admin"), sessions = new Sessions();
  const authenticator = new AuthenticatorSection();
  const password = passwordSection(user.username, () => reportErrors(() => sessions.load()));
  const role = user.role === "admin" ? ", an administrator" : "";
  main.append(
    h("div", { class: "head" }, h("div", {}, h("h1", {}, "Account"),
      h("p", { class: "quiet" }, `Signed in as ${user.username}${role}.`))),
    h("div", { class: "columns even" },
      h("div", {}, tokens.element), h("div", {}, sessions.element, password, authenticator.element)));
  const loadTokens = () => tokens.loadWorkspaces().then(() => tokens.load());
  const loadAuthenticator = async () => setVisible(password, await authenticator.load());
  await reportErrors(() => Promise.all([loadTokens(), sessions.load(), loadAuthenticator()]));
});
