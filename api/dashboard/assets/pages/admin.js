/** For administrators. */

import { Errors } from "../admin/errors.js";
import { Status } from "../admin/status.js";
import { Users } from "../admin/users.js";
import { AllWorkspaces } from "../admin/workspaces.js";
import { every } from "../clock.js";
import { h } from "../dom.js";
import { start } from "../frame.js";
import { orTell } from "../parts/toast.js";
import { link } from "../place.js";

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
