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

/** What *recover* accepts: its button, what it does, and what must be agreed to first. */
export const CHOICES = {
  retry: { label: "Try again", meaning: "Look for the files again and go on from there. Gives up nothing." },
  restore_archive: {
    label: "Restore the last archive",
    meaning: "Go back to the last archive. Whatever is newer than it is given up.",
    consent: "I understand that files newer than the archive are given up.",
  },
  start_empty: {
    label: "Start with an empty home",
    meaning: "Begin anew. The earlier files are given up, also those in an archive.",
    consent: "I understand that my earlier files are given up, also those in an archive.",
  },
};

export const TTL_CHOICES = {
  standby: [600, 1800, 3600, 10800, 28800, 86400, 315360000],
  archive: [1800, 3600, 86400, 259200, 604800, 2592000, 315360000],
};

export const EDITORS = { "code-server": "VS Code (code-server)", jupyterlab: "JupyterLab" };

export function isBusy(workspace) {
  if (workspace.operation !== "NONE" || workspace.recovering) return true;
  if (workspace.phase === "ERROR") return false;
  return workspace.phase !== workspace.desired_state && workspace.phase !== "DELETED";
}

/** Label and tone of a workspace's badge. */
export function badgeOf(workspace) {
  if (!isBusy(workspace)) return PHASES[workspace.phase];
  if (workspace.recovering) return { label: "Looking again…", tone: "move" };
  const doing = OPERATIONS[workspace.operation]?.doing ?? ON_THE_WAY[workspace.desired_state];
  return { label: `${doing}…`, tone: "move" };
}

export function conditionInWords(key, { status, reason, message }) {
  const said = CONDITIONS[key]?.[status];
  if (said === undefined) return status === "Unknown" ? "Not looked at yet." : message;
  return typeof said === "string" ? said : (said[reason] ?? said.otherwise);
}
