/** The system at a glance: limits, states, services and sweeps. */

import { get } from "../api.js";
import { meter } from "../components/indicators.js";
import { section } from "../components/section.js";
import { h, icon, replaceChildren } from "../dom.js";
import { ahead, duration } from "../format.js";
import { ICONS } from "../icons.js";
import { PHASES } from "../words.js";

/** @import { DependencyHealth, RunningLimitsView, SweepView, SystemStatus } from "../types.js" */
/** @import { Workspace, WorkspacePage } from "../types.js" */

const MOST_OWNERS = 8;

export class Status {
  constructor() {
    this.dependencyList = h("ul", { class: "conditions" });
    this.sweepList = h("ul", { class: "conditions" });
    this.phaseCounts = h("dl", { class: "tiles" });
    this.gauges = h("div", { class: "gauges" });
    this.version = h("p", { class: "quiet" });
    this.limits = section("Running workspaces", this.gauges);
    this.phases = section("Workspaces by state", this.phaseCounts);
    this.dependencies = section("Services", this.dependencyList, this.version);
    this.sweeps = section("Sweeps", this.sweepList);
  }

  async load() {
    /** @type {[SystemStatus, WorkspacePage]} */
    const [status, running] = await Promise.all([
      get("/admin/status"), get("/admin/workspaces?phase=RUNNING&limit=200"),
    ]);
    const { sweeps, phases, version, live_clients: clients } = status;
    replaceChildren(this.dependencyList, status.dependencies.map(dependencyItem));
    const silent = h("li", { class: "quiet" }, "Temporal does not answer.");
    replaceChildren(this.sweepList, sweeps.length ? sweeps.map(sweepItem) : silent);
    replaceChildren(this.phaseCounts, Object.entries(phases).map(([phase, count]) =>
      h("div", {}, h("dt", {}, PHASES[phase].label), h("dd", {}, String(count)))));
    replaceChildren(this.version, `CodeHub ${version} · ${clients} open page${clients === 1 ? "" : "s"}`);
    this.showGauges(status.limits, running.items);
  }

  /**
   * @param {RunningLimitsView} limits
   * @param {Workspace[]} running
   */
  showGauges(limits, running) {
    replaceChildren(this.gauges, gauge("Everybody", limits.running, limits.max_running_global),
      busiestOwners(running).map(([name, count]) => gauge(name, count, limits.max_running_per_user)));
  }
}

/**
 * @param {Workspace[]} running
 * @returns {[username: string, count: number][]}
 */
function busiestOwners(running) {
  /** @type {Map<string, number>} */
  const owners = new Map();
  for (const { owner } of running) owners.set(owner.username, (owners.get(owner.username) ?? 0) + 1);
  return [...owners].sort((a, b) => b[1] - a[1]).slice(0, MOST_OWNERS);
}

/**
 * @param {string} label
 * @param {number} taken
 * @param {number} max
 */
function gauge(label, taken, max) {
  const bar = meter(`${label}: ${taken} of ${max} running`, taken, max);
  bar.toggleAttribute("data-full", taken >= max);
  const text = h("p", {}, h("span", {}, label), h("strong", {}, `${taken} of ${max}`));
  return h("div", { class: "gauge" }, text, bar);
}

/** @param {DependencyHealth} dependency */
function dependencyItem({ name, healthy, required, version, error, milliseconds }) {
  const facts = healthy ? [version, `${Math.round(milliseconds)} ms`]
    : [error ?? "does not answer", required ? "nothing works without it" : "CodeHub works without it"];
  return statusItem(healthy, name, facts.filter(Boolean).join(" · "));
}

/** @param {SweepView} sweep */
function sweepItem({ id, paused, running, age_seconds: age, next_at: next }) {
  const last = running ? "running now" : age === null ? "has never run" : `ran ${duration(age)} ago`;
  const facts = [last, next && `next ${ahead(next)}`].filter(Boolean).join(", ");
  return statusItem(!paused, id, paused ? "paused" : facts);
}

/**
 * @param {boolean} isGood
 * @param {string} name
 * @param {string} facts
 */
function statusItem(isGood, name, facts) {
  return h("li", { class: isGood ? "good" : "bad" }, icon(isGood ? ICONS.check : ICONS.warning),
    h("span", {}, name), h("span", { class: "quiet" }, facts));
}
