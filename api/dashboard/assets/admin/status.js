/** The system at a glance: what it depends on, its schedules, how many workspaces are where. */

import { get } from "../api.js";
import { h, icon, replace } from "../dom.js";
import { ahead, duration } from "../format.js";
import { ICONS } from "../icons.js";
import { PHASES } from "../words.js";
import { section } from "../components/section.js";
import { gauge } from "./gauge.js";

export class Status {
  constructor() {
    this.dependencies = h("ul", { class: "conditions" });
    this.sweeps = h("ul", { class: "conditions" });
    this.phases = h("dl", { class: "tiles" });
    this.gauges = h("div", { class: "gauges" });
    this.version = h("p", { class: "quiet" });
    this.elements = [
      section("Places", this.gauges),
      section("Workspaces by state", this.phases),
      section("What CodeHub depends on", this.dependencies, this.version),
      section("Schedules", this.sweeps),
    ];
  }

  async load() {
    const [status, running] = await Promise.all([get("/admin/status"), get("/admin/workspaces?phase=RUNNING&limit=200")]);
    replace(this.dependencies, status.dependencies.map(dependency));
    replace(this.sweeps, status.sweeps.length ? status.sweeps.map(sweep) : h("li", { class: "quiet" }, "Temporal does not answer."));
    replace(this.phases, Object.entries(status.phases).map(([phase, count]) =>
      h("div", {}, h("dt", {}, PHASES[phase]?.label ?? phase), h("dd", {}, String(count)))));
    replace(this.version, `CodeHub ${status.version} · ${status.live_clients} open page${status.live_clients === 1 ? "" : "s"}`);
    this.showGauges(status.limits, running.items);
  }

  showGauges(limits, running) {
    const owners = new Map();
    for (const { owner } of running) owners.set(owner.username, (owners.get(owner.username) ?? 0) + 1);
    const busiest = [...owners].sort((a, b) => b[1] - a[1]).slice(0, 8);
    replace(this.gauges, gauge("Everybody", limits.running, limits.max_running_global),
      busiest.map(([name, count]) => gauge(name, count, limits.max_running_per_user)));
  }
}

function dependency({ name, healthy, required, version, error, milliseconds }) {
  const words = healthy ? [version, `${Math.round(milliseconds)} ms`] : [error ?? "does not answer", required ? "nothing works without it" : "heals by itself"];
  return h("li", { class: healthy ? "good" : "bad" }, icon(healthy ? ICONS.check : ICONS.warning),
    h("span", {}, name), h("span", { class: "quiet" }, words.filter(Boolean).join(" · ")));
}

function sweep({ id, paused, running, age_seconds: age, next_at: next }) {
  const words = paused ? "paused" : [running ? "runs now" : age === null ? "never ran" : `ran ${duration(age)} ago`, next && `next ${ahead(next)}`].filter(Boolean).join(", ");
  return h("li", { class: paused ? "bad" : "good" }, icon(paused ? ICONS.warning : ICONS.check), h("span", {}, id), h("span", { class: "quiet" }, words));
}
