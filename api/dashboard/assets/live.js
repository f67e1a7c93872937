/** Feed live events into the store, reconnect, and report when the data may be stale. */

import { ApiError, get, isUnreachable, readSession } from "./api.js";
import { every } from "./clock.js";
import { link } from "./routes.js";

/** @import { Store } from "./store.js" */
/** @import { WorkspacePage } from "./types.js" */

const SILENCE_MS = 75000, PATIENCE_MS = 1500, FIRST_DELAY_MS = 500, LONGEST_DELAY_MS = 15000;
const REFRESH_MS = 60000;

/**
 * @param {Store} store
 * @param {(isLive: boolean) => void} onChange
 */
export function follow(store, onChange) {
  const feed = new Feed(store, onChange);
  feed.connect();
  addEventListener("online", () => feed.connect());
  addEventListener("pagehide", () => feed.source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) feed.connect(); });
  // Using a workspace postpones its next stop without an event.
  every(REFRESH_MS, () => refreshRunning(store));
}

/**
 * Return how long to wait before the next attempt.
 * @param {number} failures
 * @param {number} random between 0 and 1
 */
export function reconnectDelay(failures, random) {
  return Math.min(FIRST_DELAY_MS * 2 ** failures, LONGEST_DELAY_MS) * (0.75 + random / 2);
}

export class Feed {
  /**
   * @param {Store} store
   * @param {(isLive: boolean) => void} onChange
   */
  constructor(store, onChange) {
    this.store = store;
    this.onChange = onChange;
    this.failures = 0;
    /** @type {boolean | undefined} */
    this.isLive = undefined;
    /** @type {EventSource | undefined} */
    this.source = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.retryTimer = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.silenceTimer = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.staleTimer = undefined;
  }

  connect() {
    clearTimeout(this.retryTimer);
    this.source?.close();
    const source = new EventSource(link("/api/v1/events"));
    this.source = source;
    /** @type {(name: string, action: (document: any) => void) => void} */
    const on = (name, action) => source.addEventListener(name, ({ data }) => this.receive(action, data));
    on("snapshot", ({ workspaces }) => this.store.replaceAll(workspaces));
    on("workspace_updated", (workspace) => this.store.put(workspace));
    on("workspace_deleted", ({ id }) => this.store.remove(id));
    on("workspace_progress", (progress) => this.store.putProgress(progress));
    on("heartbeat", () => {});
    source.addEventListener("error", () => this.handleError(source));
    this.watchSilence();
  }

  /**
   * @param {(document: any) => void} action
   * @param {string} data
   */
  receive(action, data) {
    this.failures = 0;
    this.watchSilence();
    this.report(true);
    action(JSON.parse(data));
  }

  /**
   * The browser itself reconnects after a lost connection, but not after an error response.
   * @param {EventSource} source
   */
  handleError(source) {
    this.staleTimer ??= setTimeout(() => this.report(false), PATIENCE_MS);
    if (source.readyState === EventSource.CLOSED) this.retryLater();
  }

  retryLater() {
    clearTimeout(this.silenceTimer);
    this.failures += 1;
    this.retryTimer = setTimeout(() => this.retry(), reconnectDelay(this.failures, Math.random()));
  }

  async retry() {
    try {
      // This goes to the sign-in page if the session has ended.
      await readSession();
    } catch (error) {
      if (isUnreachable(error) || (error instanceof ApiError && error.status === 429)) {
        this.retryLater();
        return;
      }
    }
    this.connect();
  }

  watchSilence() {
    clearTimeout(this.silenceTimer);
    this.silenceTimer = setTimeout(() => { this.report(false); this.connect(); }, SILENCE_MS);
  }

  /** @param {boolean} isLive */
  report(isLive) {
    clearTimeout(this.staleTimer);
    this.staleTimer = undefined;
    if (this.isLive === isLive) return;
    this.isLive = isLive;
    this.onChange(isLive);
  }
}

/** @param {Store} store */
async function refreshRunning(store) {
  try {
    /** @type {WorkspacePage} */
    const { items } = await get("/workspaces?phase=RUNNING&limit=200");
    for (const item of items) store.put(item);
  } catch {
    // The next refresh will do.
  }
}
