/** The workspaces as they were last told, for whoever shows them. Fed by live events and by answers. */

export class Store {
  constructor() {
    this.workspaces = new Map();
    this.progress = new Map();
    this.loaded = false;
    this.listeners = new Set();
    this.changed = new Set();
  }

  /** Called once per frame with the ids that changed. */
  subscribe(listener) {
    this.listeners.add(listener);
  }

  get(id) {
    return this.workspaces.get(id);
  }

  /** Everything there is; what is missing is gone. */
  replaceAll(workspaces) {
    const ids = new Set(workspaces.map(({ id }) => id));
    for (const id of [...this.workspaces.keys()]) if (!ids.has(id)) this.remove(id);
    for (const workspace of workspaces) this.put(workspace);
    this.loaded = true;
    this.tell();
  }

  /** An answer may arrive after a later event, so an older version never wins. */
  put(workspace) {
    const known = this.workspaces.get(workspace.id);
    if (known && known.version > workspace.version) return;
    this.workspaces.set(workspace.id, workspace);
    if (workspace.operation === "NONE") this.progress.delete(workspace.id);
    this.tell(workspace.id);
  }

  remove(id) {
    this.workspaces.delete(id);
    this.progress.delete(id);
    this.tell(id);
  }

  noteProgress(progress) {
    if (this.workspaces.get(progress.id)?.operation === "NONE") return;
    const known = this.progress.get(progress.id);
    const continues = known?.step === progress.step && known.done <= progress.done;
    const samples = continues ? known.samples.filter(({ at }) => Date.now() - at < 8000) : [];
    this.progress.set(progress.id, { ...progress, samples: [...samples, { at: Date.now(), done: progress.done }] });
    this.tell(progress.id);
  }

  tell(id) {
    if (id) this.changed.add(id);
    if (this.telling) return;
    this.telling = true;
    // Not an animation frame: those stand still in a tab that nobody looks at.
    setTimeout(() => {
      const changed = this.changed;
      [this.changed, this.telling] = [new Set(), false];
      for (const listener of this.listeners) listener(changed);
    }, 16);
  }
}
