/** Servers inside a workspace: which ports listen, and who may open them. */

import { get, messageOf, remove } from "../api.js";
import { section } from "../components/section.js";
import { openShareDialog } from "../components/share_dialog.js";
import { reportErrors, toast } from "../components/toast.js";
import { button, h, icon, replaceChildren, setText, setVisible } from "../dom.js";
import { ahead } from "../format.js";
import { ICONS } from "../icons.js";
import { AUDIENCES, ONLY_OWNER } from "../words.js";

/** @import { PortItem, PortList, Share, Workspace } from "../types.js" */

const SMALL = "button second small";
// Linux assigns these ports to programs that do not choose one, such as notebook kernels.
const FIRST_ASSIGNED = 32768, LAST_ASSIGNED = 60999;
const STOPPED = "Start the workspace to see the ports that its programs listen on.";
const NONE = "No program is listening on a port. Start a server, for example on port 3000.";
const PRIVATE = "Each port has its own address, which only the owner can open unless it is shared.";

export class Ports {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.key = "";
    this.shown = "";
    this.running = false;
    this.isMine = false;
    this.note = h("p", { class: "quiet" });
    this.list = h("ul", { class: "plain-list ports" });
    this.assignedCount = h("summary");
    this.assignedList = h("ul", { class: "plain-list ports" });
    this.assigned = h("details", { class: "fold" }, this.assignedCount, this.assignedList);
    this.element = section("Ports", this.note, this.list, this.assigned);
  }

  /**
   * @param {Workspace} workspace
   * @param {boolean} isMine
   */
  update(workspace, isMine) {
    const key = `${workspace.version} ${isMine}`;
    if (this.key === key) return;
    this.key = key;
    this.running = workspace.phase === "RUNNING";
    this.isMine = isMine;
    this.refresh();
  }

  /** Load the ports. A failure is shown in the panel only: the rest of the page works without them. */
  async refresh() {
    try {
      await this.load();
    } catch (error) {
      setText(this.note, messageOf(error));
      this.shown = "";
    }
  }

  async load() {
    this.show(await get(`/workspaces/${this.id}/ports`));
  }

  /**
   * Show the ports if they have changed; keep the focus on the same control.
   * @param {PortList} ports
   */
  show(ports) {
    const key = JSON.stringify([ports, this.running, this.isMine]);
    if (key === this.shown) return;
    this.shown = key;
    const { activeElement } = document;
    const label = this.element.contains(activeElement) && activeElement?.ariaLabel;
    setText(this.note, noteOf(ports, this.running));
    const assigned = ports.items.filter(isAssigned);
    const chosen = ports.items.filter((each) => !isAssigned(each));
    replaceChildren(this.list, chosen.map((each) => this.item(each, ports)));
    replaceChildren(this.assignedList, assigned.map((each) => this.item(each, ports)));
    setText(this.assignedCount, `Assigned automatically (${assigned.length})`);
    setVisible(this.list, chosen.length > 0);
    setVisible(this.assigned, assigned.length > 0);
    if (label) this.controls().find((each) => each.ariaLabel === label)?.focus();
  }

  /** @returns {HTMLElement[]} */
  controls() {
    return [...this.element.querySelectorAll("a"), ...this.element.querySelectorAll("button")];
  }

  /**
   * @param {PortItem} item
   * @param {PortList} ports
   */
  item(item, ports) {
    const { port, process, listening, share } = item;
    const program = listening ? process ?? "" : "not listening";
    return h("li", {},
      h("div", {}, h("p", {}, h("strong", {}, String(port)), program && ` ${program}`),
        h("p", { class: "quiet" }, audienceOf(share))),
      h("div", { class: "buttons" }, this.buttons(item, ports)));
  }

  /**
   * Only the owner can open and share ports; an administrator can stop sharing.
   * @param {PortItem} item
   * @param {PortList} ports
   */
  buttons({ port, listening, url, share }, ports) {
    const mayShare = this.isMine && url && ports.sharing !== "none";
    return [
      this.isMine && url && listening && h("a", { class: SMALL, href: url, target: "_blank",
        rel: "noopener noreferrer", "aria-label": `Open port ${port}` }, "Open"),
      share && url && button({ class: SMALL, "aria-label": `Copy the link to port ${port}`,
        onclick: () => copyLink(url) }, icon(ICONS.copy)),
      share && button({ class: SMALL, "aria-label": `Stop sharing port ${port}`,
        onclick: () => reportErrors(() => this.stop(port)) }, "Stop sharing"),
      !share && mayShare && button({ class: SMALL, "aria-label": `Share port ${port}`,
        onclick: () => this.share(port, ports) }, "Share…"),
    ];
  }

  /**
   * @param {number} port
   * @param {PortList} ports
   */
  share(port, ports) {
    openShareDialog(this.id, port, ports, async ({ url }) => {
      await this.load();
      await copyLink(url, `Port ${port} is shared`);
    });
  }

  /** @param {number} port */
  async stop(port) {
    await remove(`/workspaces/${this.id}/ports/${port}/share`);
    toast(`Port ${port} is no longer shared.`);
    await this.load();
  }
}

/**
 * Return whether the port was assigned automatically and is not shared.
 * @param {Pick<PortItem, "port" | "share">} item
 */
export function isAssigned({ port, share }) {
  return !share && port >= FIRST_ASSIGNED && port <= LAST_ASSIGNED;
}

/**
 * Describe the list, or say why it is empty.
 * @param {Pick<PortList, "unavailable" | "items">} ports
 * @param {boolean} running
 */
export function noteOf({ unavailable, items }, running) {
  if (unavailable) return unavailable;
  if (!running) return STOPPED;
  return items.length ? PRIVATE : NONE;
}

/**
 * Describe who may open a port, and until when.
 * @param {Share | null} share
 */
export function audienceOf(share) {
  if (!share) return `Open to ${ONLY_OWNER}.`;
  const until = share.expires_at ? `, ends ${ahead(share.expires_at)}` : "";
  return `Open to ${AUDIENCES[share.audience]}${until}.`;
}

/**
 * Copy a link, or show it if the browser forbids copying.
 * @param {string} url
 * @param {string} [done] what has just happened
 */
async function copyLink(url, done) {
  try {
    await navigator.clipboard.writeText(url);
    toast(done ? `${done}. The link is copied.` : "The link is copied.");
  } catch {
    toast(`${done ? `${done}: ` : ""}${url}`);
  }
}
