/** For administrators. */

import { Errors } from "./errors.js";
import { Status } from "./status.js";
import { Users } from "./users.js";
import { AllWorkspaces } from "./workspaces.js";
import { every } from "../clock.js";
import { h } from "../dom.js";
import { start } from "../page.js";
import { orTell } from "../components/toast.js";
import { link } from "../routes.js";

const AGAIN_MS = 10000;

start(async ({ main, user }) => {
  if (user.role !== "admin") {
    main.append(h("div", { class: "card lone" }, h("h1", {}, "For administrators"), h("p", {}, "Your account may not see this page."),
      h("p", {}, h("a", { class: "button", href: link("/") }, "All workspaces"))));
    return;
  }
  const [status, errors, users, workspaces] = [new Status(), new Errors(), new Users(), new AllWorkspaces()];
  const [places, phases, dependencies, sweeps] = status.elements;
  main.append(h("div", { class: "head" }, h("h1", {}, "Administration")),
    h("div", { class: "columns even" },
      h("div", {}, errors.element, places, phases, workspaces.element),
      h("div", {}, dependencies, sweeps, users.element)));
  const look = () => orTell(() => Promise.all([status.load(), errors.load()]));
  await orTell(() => Promise.all([look(), users.load(), workspaces.load()]));
  every(AGAIN_MS, look);
});
