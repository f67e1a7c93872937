/** The latest known workspaces and their progress, from live events and from responses. */

/** @import { ProgressView, Workspace } from "./types.js" */
/** @typedef {{ at: number, done: number }} Sample */
/** @typedef {ProgressView & { samples: Sample[] }} MeasuredProgress */
/** @typedef {(changed: Set<string>) => void} Listener */

const SAMPLE_MS = 8000, NOTIFY_MS = 16;

export class Store {
  constructor() {
    /** @type {Map<string, Workspace>} */
    this.workspaces = new Map();
    /** @type {Map<string, MeasuredProgress>} */
    this.progress = new Map();
    this.loaded = false;
    /** @type {Set<Listener>} */
    this.listeners = new Set();
    /** @type {Set<string>} */
    this.changed = new Set();
    this.notifying = false;
  }

  /**
   * Call the listener at most once per frame, with the ids that changed.
   * @param {Listener} listener
   */
  subscribe(listener) {
    this.listeners.add(listener);
  }

  /** @param {string} id */
  get(id) {
    return this.workspaces.get(id);
  }

  /**
   * Take a complete list: a workspace that is not in it is gone.
   * @param {Workspace[]} workspaces
   */
  replaceAll(workspaces) {
    const ids = new Set(workspaces.map(({ id }) => id));
    for (const id of [...this.workspaces.keys()]) if (!ids.has(id)) this.remove(id);
    for (const workspace of workspaces) this.put(workspace);
    this.loaded = true;
    this.notify();
  }

  /**
   * Take one workspace. A response may arrive after a later event, so an older version never wins.
   * @param {Workspace} workspace
   */
  put(workspace) {
    const known = this.workspaces.get(workspace.id);
    if (known && known.version > workspace.version) return;
    this.workspaces.set(workspace.id, workspace);
    if (workspace.operation === "NONE") this.progress.delete(workspace.id);
    this.notify(workspace.id);
  }

  /** @param {string} id */
  remove(id) {
    this.workspaces.delete(id);
    this.progress.delete(id);
    this.notify(id);
  }

  /** @param {ProgressView} progress */
  putProgress(progress) {
    if (this.workspaces.get(progress.id)?.operation === "NONE") return;
    const known = this.progress.get(progress.id);
    const continues = known?.step === progress.step && known.done <= progress.done;
    const samples = continues ? known.samples.filter(({ at }) => Date.now() - at < SAMPLE_MS) : [];
    samples.push({ at: Date.now(), done: progress.done });
    this.progress.set(progress.id, { ...progress, samples });
    this.notify(progress.id);
  }

  /** @param {string} [id] */
  notify(id) {
    if (id) this.changed.add(id);
    if (this.notifying) return;
    this.notifying = true;
    // Not an animation frame: those stop in a hidden tab.
    setTimeout(() => {
      const { changed } = this;
      this.changed = new Set();
      this.notifying = false;
      for (const listener of this.listeners) listener(changed);
    }, NOTIFY_MS);
  }
}
