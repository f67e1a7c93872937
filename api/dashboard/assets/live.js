/** Live events into the store: connects again by itself, and says when what is shown may be old. */

import { get, isUnreachable, readSession } from "./api.js";
import { every } from "./clock.js";
import { link } from "./routes.js";

const SILENCE_MS = 75000, PATIENCE_MS = 1500, FIRST_DELAY_MS = 500, LONGEST_DELAY_MS = 15000;
const REFRESH_MS = 60000;

/** `onState(isLive)` is called on every change. */
export function follow(store, onState) {
  new Feed(store, onState).connect();
  // Use of a workspace moves its next stop, but is no event.
  every(REFRESH_MS, () => refreshRunning(store));
}

class Feed {
  constructor(store, onState) {
    Object.assign(this, { store, onState, failures: 0, isLive: undefined });
    addEventListener("online", () => this.connect());
    addEventListener("pagehide", () => this.source?.close());
    addEventListener("pageshow", (event) => { if (event.persisted) this.connect(); });
  }

  connect() {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = new EventSource(link("/api/v1/events"));
    const on = (name, act) => this.source.addEventListener(name, (event) => this.hear(act, event));
    on("snapshot", ({ workspaces }) => this.store.replaceAll(workspaces));
    on("workspace_updated", (workspace) => this.store.put(workspace));
    on("workspace_deleted", ({ id }) => this.store.remove(id));
    on("workspace_progress", (progress) => this.store.noteProgress(progress));
    on("heartbeat", () => {});
    this.source.addEventListener("error", () => this.lose());
    this.watch();
  }

  hear(act, event) {
    this.failures = 0;
    this.watch();
    this.report(true);
    act(JSON.parse(event.data));
  }

  /** The browser tries again after a broken connection, but not after an answer that is an error. */
  async lose() {
    this.doubt ??= setTimeout(() => this.report(false), PATIENCE_MS);
    if (this.source.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.silence);
    this.failures += 1;
    const delay = Math.min(FIRST_DELAY_MS * 2 ** this.failures, LONGEST_DELAY_MS);
    this.retry = setTimeout(() => this.tryAgain(), delay * (0.75 + Math.random() / 2));
  }

  async tryAgain() {
    try {
      // Whoever was signed out meanwhile goes to the sign-in page from here.
      await readSession();
    } catch (error) {
      if (isUnreachable(error) || error.status === 429) return this.lose();
    }
    this.connect();
  }

  watch() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => { this.report(false); this.connect(); }, SILENCE_MS);
  }

  report(isLive) {
    clearTimeout(this.doubt);
    this.doubt = undefined;
    if (this.isLive !== isLive) this.onState((this.isLive = isLive));
  }
}

async function refreshRunning(store) {
  try {
    const { items } = await get("/workspaces?phase=RUNNING&limit=200");
    for (const item of items) store.put(item);
  } catch {
    // The next time will do.
  }
}
