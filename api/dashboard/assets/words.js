/** Generated from codehub/words.py by `make docs`; do not edit. */

/** @type {Record<string, Record<string, string>>} */
export const PHASES = {
  "PENDING": {
    "label": "New",
    "sentence": "It has never been started."
  },
  "ARCHIVED": {
    "label": "Archived",
    "sentence": "Its files are safe in an archive."
  },
  "STANDBY": {
    "label": "Stopped",
    "sentence": "Its files are safe on its disk."
  },
  "RUNNING": {
    "label": "Running",
    "sentence": "It is ready to use."
  },
  "ERROR": {
    "label": "Failed",
    "sentence": "It needs your decision."
  },
  "DELETING": {
    "label": "Deleting",
    "sentence": "It can no longer be opened."
  },
  "DELETED": {
    "label": "Deleted",
    "sentence": "It can no longer be opened."
  }
};

/** @type {Record<string, string>} */
export const OPERATIONS = {
  "PROVISIONING": "Preparing",
  "RESTORING": "Restoring",
  "STARTING": "Starting",
  "STOPPING": "Stopping",
  "ARCHIVING": "Archiving",
  "CREATE_EMPTY_ARCHIVE": "Preparing",
  "DELETING": "Deleting"
};

export const RECOVERING = "Recovering";

/** @type {Record<string, string>} */
export const HEADING_TO = {
  "RUNNING": "Getting ready",
  "STANDBY": "Stopping",
  "ARCHIVED": "Archiving",
  "DELETED": "Deleting"
};

/** @type {Record<string, string>} */
export const COMPLETED = {
  "PROVISIONING": "Created the home",
  "RESTORING": "Restored the files",
  "STARTING": "Started",
  "STOPPING": "Stopped",
  "ARCHIVING": "Archived the files",
  "CREATE_EMPTY_ARCHIVE": "Created an empty archive",
  "DELETING": "Deleted"
};

/** @type {Record<string, string>} */
export const RESULTS = {
  "RUNNING": "in progress",
  "COMPLETED": "done",
  "FAILED": "failed",
  "RELEASED": "paused by an outage",
  "ABANDONED": "replaced by another operation"
};

/** @type {Record<string, string>} */
export const NEXT_CHANGES = {
  "STANDBY": "Stops",
  "ARCHIVED": "Moves to an archive"
};

/** @type {Record<string, string>} */
export const STEPS = {
  "claim": "Reserving the workspace",
  "observe": "Checking the workspace",
  "pull_image": "Fetching the image",
  "start_instance": "Starting the IDE",
  "stop_instance": "Stopping the IDE",
  "provision_volume": "Creating the disk",
  "remove_archived_volume": "Removing the disk",
  "remove_volume": "Removing the disk",
  "upload_archive": "Uploading the archive",
  "upload_empty_archive": "Uploading an empty archive",
  "commit_archive": "Recording the archive",
  "restore_archive": "Restoring the archive",
  "mark_restored": "Recording the restored files",
  "settle": "Checking the result",
  "record_failure": "Recording the failure",
  "launch": "Launching the IDE",
  "wait for the IDE": "Waiting for the IDE",
  "upload": "Uploading",
  "download": "Downloading",
  "verify": "Verifying",
  "pulling the image": "Pulling the image",
  "unpacking the image": "Unpacking the image",
  "waiting for its turn": "Waiting for its turn",
  "waiting for a node": "Waiting for a free machine",
  "waiting for the disk": "Waiting for the disk"
};

/** @type {Record<string, Record<string, string>>} */
export const FAILURES = {
  "Timeout": {
    "headline": "It took too long",
    "happened": "The operation exceeded its time limit."
  },
  "RetryExceeded": {
    "headline": "It did not work",
    "happened": "CodeHub tried several times and gave up."
  },
  "ActionFailed": {
    "headline": "It did not work",
    "happened": "A step failed."
  },
  "DataLost": {
    "headline": "Files are missing",
    "happened": "The files are not where CodeHub left them."
  },
  "Unreachable": {
    "headline": "A service does not answer",
    "happened": "CodeHub could not reach a service that it needs."
  },
  "ImagePullFailed": {
    "headline": "It cannot start",
    "happened": "CodeHub could not fetch the image, or the image is not allowed."
  },
  "ContainerWithoutVolume": {
    "headline": "The IDE has lost its files",
    "happened": "The IDE runs without the complete home."
  },
  "ArchiveCorrupted": {
    "headline": "The archive is damaged",
    "happened": "The archive does not match its checksum, so CodeHub restored nothing."
  }
};

export const UNKNOWN_FAILURE = "Something went wrong";

export const DELETION_FAILED = "It could not be deleted";

/** @type {Record<string, string>} */
export const OUT_OF_REACH = {
  "headline": "Its files are out of reach",
  "happened": "The files are on the disk of a node that does not respond."
};

/** @type {Record<string, string>} */
export const CHOICES = {
  "retry": "Try again",
  "wait": "Wait for the node",
  "restore_archive": "Restore this archive",
  "use_disk": "Use what is on the disk",
  "start_empty": "Start with an empty home"
};

export const CONDITIONS = {
  "infra.container_ready": {
    "title": "IDE",
    "reasons": {
      "Ready": "The IDE is running.",
      "NotReady": "The IDE has stopped or does not answer.",
      "Absent": "No IDE is running."
    },
    "otherwise": null,
    "only_if_false": false
  },
  "infra.container_answers": {
    "title": "health check",
    "reasons": {
      "NotAnswering": "The IDE does not answer right now. If this lasts, CodeHub restarts it."
    },
    "otherwise": null,
    "only_if_false": true
  },
  "infra.configuration_current": {
    "title": "configuration",
    "reasons": {},
    "otherwise": null,
    "only_if_false": true
  },
  "storage.volume_ready": {
    "title": "disk",
    "reasons": {
      "Complete": "The files are on its disk.",
      "Incomplete": "Its disk holds only some of the files. The archive has all of them.",
      "Vanished": "Its disk has disappeared, with the newest files.",
      "Absent": "It has no disk at the moment."
    },
    "otherwise": null,
    "only_if_false": false
  },
  "storage.volume_reachable": {
    "title": "node",
    "reasons": {},
    "otherwise": null,
    "only_if_false": true
  },
  "storage.archive_ready": {
    "title": "archive",
    "reasons": {
      "Readable": "Its archive is there and readable.",
      "Gone": "Its archive has disappeared.",
      "NoArchive": "It has no archive yet."
    },
    "otherwise": null,
    "only_if_false": false
  },
  "policy.healthy": {
    "title": "health",
    "reasons": {
      "Healthy": "Everything is in order."
    },
    "otherwise": "Something is wrong.",
    "only_if_false": false
  }
};

export const NOT_OBSERVED = "Not checked yet.";

/** @type {Record<string, string>} */
export const EVENTS = {
  "created": "created it",
  "state_requested": "asked to change it",
  "metadata_changed": "changed its settings",
  "undeleted": "undid the deletion",
  "recovery_requested": "asked to recover it",
  "recovered": "recovered it",
  "recovery_refused": "could not recover it that way",
  "phase_changed": "noticed a change",
  "error_found": "noticed a problem",
  "operation_claimed": "began",
  "attempt_failed": "failed an attempt",
  "operation_completed": "finished",
  "operation_failed": "gave up",
  "operation_released": "paused during an outage"
};

/** @type {Record<string, string>} */
export const STATE_REQUESTS = {
  "RUNNING": "asked to start it",
  "STANDBY": "asked to stop it",
  "ARCHIVED": "asked to archive it",
  "DELETED": "asked to delete it"
};

export const PURGE_REQUEST = "asked to delete it for good";

export const CODEHUB_ACTORS = [
  "control-plane",
  "ttl"
];

export const UNUSED = "because nobody used it";

/** @type {Record<string, string>} */
export const IDES = {
  "code-server": "VS Code (code-server)",
  "jupyterlab": "JupyterLab"
};

/** @type {Record<string, string>} */
export const SIGN_IN_PROBLEMS = {
  "oidc_expired": "This sign-in took too long or was already used. Sign in again.",
  "oidc_refused": "{provider} did not sign you in. Try again, or ask an administrator.",
  "oidc_rejected": "The response of {provider} could not be verified. Try again, or tell an administrator.",
  "oidc_unavailable": "{provider} is not responding. Try again in a minute.",
  "oidc_not_allowed": "You are not in a group that may use CodeHub. Ask an administrator to add you to one.",
  "oidc_disabled": "Your account is disabled. Ask an administrator to enable it."
};

/** @type {Record<string, string>} */
export const AUDIENCES = {
  "users": "users who are signed in",
  "public": "everyone with the link"
};

export const ONLY_OWNER = "its owner only";

export const ALWAYS_REFUSED = "Private and local addresses and CodeHub's own servers are always refused.";

export const NOT_ENFORCED = "Workspaces connect directly here: they do not use the egress gateway.";

/** @type {Record<string, string>} */
export const AUDIT_ACTIONS = {
  "sign_in": "Sign-in",
  "sign_out": "Sign-out",
  "lockout": "Lock-out",
  "password_confirm": "Password entered again",
  "password_change": "Own password changed",
  "token_create": "Token created",
  "token_revoke": "Token revoked",
  "session_revoke": "Session ended",
  "sign_out_everywhere": "Signed out everywhere",
  "authenticator_add": "Second factor added",
  "authenticator_remove": "Second factor removed",
  "user_add": "User added",
  "user_role": "Role changed",
  "user_disable": "User disabled",
  "user_enable": "User enabled",
  "user_password": "Password set",
  "user_authenticator": "Second factor of a user removed",
  "recover": "Recover choice",
  "network_policy": "Network policy changed",
  "network_limit": "Network limit changed",
  "disk_limit": "Disk limit changed",
  "port_share": "Port shared",
  "port_unshare": "Port no longer shared"
};
