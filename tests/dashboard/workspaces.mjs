/** Workspaces as the API sends them. */

export const READY = { status: "True", reason: "Ready", message: "", last_transition_time: null };

/** A stopped workspace, changed by `fields`. */
export function workspace(fields = {}) {
  return {
    id: "1", name: "notes", description: null, image_ref: "jupyterlab",
    phase: "STANDBY", desired_state: "STANDBY",
    operation: "NONE", operation_started_at: null, settled: true, needs_person: false, recovering: false,
    waiting: null, out_of_reach: null, error: null, recover: null, archive: null, next_change: null,
    restart_to_apply: false,
    disk: { used_bytes: null, limit_bytes: null, complete: true, message: null },
    conditions: {}, deleted_at: null, last_access_at: null, created_at: "2026-07-01T12:00:00Z", version: 1,
    ...fields,
  };
}

/** A workspace that an operation is moving. */
export function busy(fields = {}) {
  return workspace({ settled: false, operation: "STARTING", desired_state: "RUNNING", ...fields });
}

/** A workspace whose files are on the disk of a node that does not respond. */
export function outOfReach(fields = {}) {
  const lost = {
    since: "2026-07-01T12:00:00Z", message: "On a lost node.", last_archive_at: "2026-06-30T12:00:00Z",
  };
  const waiting = { resources: ["volume"], since: lost.since, message: lost.message };
  const recover = { choices: [], archives: [], undelete: false };
  const settled = { settled: false, desired_state: "RUNNING" };
  return workspace({ ...settled, waiting, out_of_reach: lost, recover, ...fields });
}

/** A failed workspace. */
export function failed(fields = {}) {
  const error = { reason: "DataLost", message: "Gone.", explanation: "Lost.", recover_choices: [] };
  return workspace({ phase: "ERROR", needs_person: true, error, ...fields });
}
