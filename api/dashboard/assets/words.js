/** What is said, in tables: phases, operations, conditions, errors and the ways out of them. */

/** Badge of a phase at rest: its word, its tone and a sentence. */
export const PHASES = {
  PENDING: { label: "New", tone: "rest", sentence: "Not started yet." },
  ARCHIVED: { label: "Archived", tone: "deep", sentence: "Its files are in its archive." },
  STANDBY: { label: "Stopped", tone: "rest", sentence: "Its files are on its disk." },
  RUNNING: { label: "Running", tone: "go", sentence: "Ready to be used." },
  ERROR: { label: "Needs you", tone: "warn", sentence: "It stands still until you decide." },
  DELETING: { label: "Deleting", tone: "rest", sentence: "It is being deleted." },
  DELETED: { label: "Deleted", tone: "rest", sentence: "It is deleted." },
};

export const OPERATIONS = {
  PROVISIONING: { doing: "Preparing", done: "Prepared a home" },
  RESTORING: { doing: "Restoring", done: "Restored the files" },
  STARTING: { doing: "Starting", done: "Started" },
  STOPPING: { doing: "Stopping", done: "Stopped" },
  ARCHIVING: { doing: "Archiving", done: "Archived the files" },
  CREATE_EMPTY_ARCHIVE: { doing: "Preparing", done: "Made an empty archive" },
  DELETING: { doing: "Deleting", done: "Deleted" },
};

const ON_THE_WAY = { RUNNING: "Getting ready", STANDBY: "Stopping", ARCHIVED: "Archiving", DELETED: "Deleting" };

/** What each condition means, by its status; the reason decides where a status has several meanings. */
const CONDITIONS = {
  "infra.container_ready": {
    True: "The editor runs and answers.",
    False: { NotReady: "The editor has stopped, or does not answer.", otherwise: "No editor is running." },
  },
  "infra.container_answers": { False: { otherwise: "The editor does not answer right now. It is restarted if that lasts." } },
  "infra.configuration_current": {},
  "storage.volume_ready": {
    True: "Your files are on its disk.",
    False: {
      Vanished: "Its disk has disappeared.",
      Incomplete: "Its disk holds only a part of the files; the archive has them all.",
      otherwise: "It has no disk at the moment.",
    },
  },
  "storage.archive_ready": {
    True: "Its archive is there and readable.",
    False: { Gone: "Its archive is gone from the storage.", otherwise: "It has no archive." },
  },
  "policy.healthy": { True: "Everything is in order.", False: { otherwise: "Something is wrong; see above." } },
};
const ONLY_IF_FALSE = new Set(["infra.container_answers", "infra.configuration_current"]);

/** The conditions to show, in order; some are worth a line only where they are not met. */
export function conditionsToShow(conditions) {
  return Object.keys(CONDITIONS).filter((key) => conditions[key] && (!ONLY_IF_FALSE.has(key) || conditions[key].status === "False"));
}

export const FAILURES = {
  Timeout: "It took too long",
  RetryExceeded: "It did not work",
  ActionFailed: "It did not work",
  DataLost: "Files are missing",
  Unreachable: "Something does not answer",
  ImagePullFailed: "It cannot start",
  ContainerWithoutVolume: "The editor is without its files",
  ArchiveCorrupted: "The archive is damaged",
};

/** Buttons for what *recover* accepts; the API says what each means and costs. */
export const CHOICES = {
  retry: "Try again",
  restore_archive: "Restore this archive",
  use_disk: "Use what is on the disk",
  start_empty: "Start with an empty home",
};

export const TTL_CHOICES = {
  standby: [600, 1800, 3600, 10800, 28800, 86400, 315360000],
  archive: [1800, 3600, 86400, 259200, 604800, 2592000, 315360000],
};

export const EDITORS = { "code-server": "VS Code (code-server)", jupyterlab: "JupyterLab" };

/** Something is going on, or about to. */
export function isBusy(workspace) {
  return !workspace.settled;
}

/** It waits for something that does not answer, and may be asked for something else meanwhile. */
export function isWaiting(workspace) {
  return workspace.waiting !== null && workspace.operation === "NONE" && !workspace.recovering;
}

/** Label and tone of a workspace's badge. */
export function badgeOf(workspace) {
  if (workspace.needs_person) return PHASES.ERROR;
  if (isWaiting(workspace)) return { label: "Waiting…", tone: "move" };
  if (!isBusy(workspace)) return PHASES[workspace.phase];
  if (workspace.recovering) return { label: "Looking again…", tone: "move" };
  const doing = OPERATIONS[workspace.operation]?.doing ?? ON_THE_WAY[workspace.desired_state];
  return { label: `${doing}…`, tone: "move" };
}

/** What went wrong, in a few words. */
export function failureOf({ error, deleted_at: deleted }) {
  return deleted ? "It could not be deleted" : FAILURES[error?.reason] ?? "Something went wrong";
}

export function conditionInWords(key, { status, reason, message }) {
  const said = CONDITIONS[key]?.[status];
  if (said === undefined) return status === "Unknown" ? "Not looked at yet." : message;
  return typeof said === "string" ? said : (said[reason] ?? said.otherwise);
}
