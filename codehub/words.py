"""The words that people read about a workspace: one table for the dashboard, the proxy's pages and the CLI.

`make docs` writes them to api/dashboard/assets/words.js.
"""

from dataclasses import dataclass, field

from codehub.domain.conditions import Reason, Resource
from codehub.domain.disk import DiskLevel
from codehub.domain.history import OperationResult
from codehub.domain.port_shares import Audience
from codehub.domain.recovery import RecoverChoice
from codehub.domain.single_sign_on import SignInProblem
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase


@dataclass(frozen=True)
class PhaseWords:
    """A phase on a badge and in a sentence; `arrived` is the headline of a page that waited for it."""

    label: str
    sentence: str
    arrived: str = ""


@dataclass(frozen=True)
class WorkWords:
    """Something under way: on a badge, and as the headline and the text of a page."""

    badge: str
    headline: str
    detail: str


@dataclass(frozen=True)
class FailureWords:
    """An error: in a few words, in a sentence, and what to do about it."""

    headline: str
    happened: str
    advice: str


@dataclass(frozen=True)
class ChoiceWords:
    """A way to recover: its button, what it does, and what it costs."""

    label: str
    meaning: str
    consequence: str | None = None


@dataclass(frozen=True)
class ConditionWords:
    """A condition: its title, and what each reason means."""

    title: str
    reasons: dict[Reason, str] = field(default_factory=dict)
    # For a reason that is not in the table; without it the condition's own message is shown.
    otherwise: str | None = None
    only_if_false: bool = False


PHASES = {
    Phase.PENDING: PhaseWords("New", "It has never been started.", "It was not started"),
    Phase.ARCHIVED: PhaseWords("Archived", "Its files are safe in an archive.", "It was archived"),
    Phase.STANDBY: PhaseWords("Stopped", "Its files are safe on its disk.", "It was stopped"),
    Phase.RUNNING: PhaseWords("Running", "It is ready to use.", "It is running"),
    Phase.ERROR: PhaseWords("Failed", "It needs your decision."),
    Phase.DELETING: PhaseWords("Deleting", "It can no longer be opened.", "It is being deleted"),
    Phase.DELETED: PhaseWords("Deleted", "It can no longer be opened.", "It was deleted"),
}

_PREPARING = WorkWords("Preparing", "Preparing your workspace", "CodeHub is creating a home for your files.")
_STOPPING = WorkWords("Stopping", "Stopping your workspace", "Your files stay on its disk.")
_ARCHIVING = WorkWords(
    "Archiving", "Archiving your files", "The disk is removed only after the archive is complete."
)
_DELETING = WorkWords("Deleting", "Deleting this workspace", "It can no longer be opened.")
OPERATIONS = {
    Operation.PROVISIONING: _PREPARING,
    Operation.RESTORING: WorkWords(
        "Restoring", "Restoring your files", "They come back exactly as they were archived."
    ),
    Operation.STARTING: WorkWords(
        "Starting", "Starting your workspace", "Your files are in place. The IDE opens here when it is ready."
    ),
    Operation.STOPPING: _STOPPING,
    Operation.ARCHIVING: _ARCHIVING,
    Operation.CREATE_EMPTY_ARCHIVE: _PREPARING,
    Operation.DELETING: _DELETING,
}
RECOVERING = WorkWords("Recovering", "Recovering your workspace", "CodeHub is checking where your files are.")
# Between two operations.
HEADING_TO = {
    DesiredState.RUNNING: WorkWords(
        "Getting ready", "Getting your workspace ready", "The IDE opens here when it is ready."
    ),
    DesiredState.STANDBY: _STOPPING,
    DesiredState.ARCHIVED: _ARCHIVING,
    DesiredState.DELETED: _DELETING,
}
COMPLETED = {
    Operation.PROVISIONING: "Created the home",
    Operation.RESTORING: "Restored the files",
    Operation.STARTING: "Started",
    Operation.STOPPING: "Stopped",
    Operation.ARCHIVING: "Archived the files",
    Operation.CREATE_EMPTY_ARCHIVE: "Created an empty archive",
    Operation.DELETING: "Deleted",
}
RESULTS = {
    OperationResult.RUNNING: "in progress",
    OperationResult.COMPLETED: "done",
    OperationResult.FAILED: "failed",
    OperationResult.RELEASED: "paused by an outage",
    OperationResult.ABANDONED: "replaced by another operation",
}
# Idle workspaces change by themselves.
NEXT_CHANGES = {DesiredState.STANDBY: "Stops", DesiredState.ARCHIVED: "Moves to an archive"}

# Activities, and what they report while they run.
STEPS = {
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
    "waiting for the disk": "Waiting for the disk",
}
# The name of the operation does not suggest these, so they are shown next to it.
NOTABLE_STEPS = frozenset(
    {
        "pulling the image",
        "unpacking the image",
        "waiting for its turn",
        "waiting for a node",
        "waiting for the disk",
    }
)

_TRY_AGAIN = "Try again. If it happens again, show this page to your administrator."
FAILURES = {
    ErrorReason.TIMEOUT: FailureWords(
        "It took too long", "The operation exceeded its time limit.", _TRY_AGAIN
    ),
    ErrorReason.RETRY_EXCEEDED: FailureWords(
        "It did not work", "CodeHub tried several times and gave up.", _TRY_AGAIN
    ),
    ErrorReason.ACTION_FAILED: FailureWords("It did not work", "A step failed.", _TRY_AGAIN),
    ErrorReason.DATA_LOST: FailureWords(
        "Files are missing",
        "The files are not where CodeHub left them.",
        "If you can put the disk back, do that and try again. CodeHub gives up nothing before you decide.",
    ),
    ErrorReason.UNREACHABLE: FailureWords(
        "A service does not answer", "CodeHub could not reach a service that it needs.", _TRY_AGAIN
    ),
    ErrorReason.IMAGE_PULL_FAILED: FailureWords(
        "It cannot start",
        "CodeHub could not fetch the image, or the image is not allowed.",
        "Check the name of the image, whether the registry answers, and whether administrators allow it; "
        "then try again.",
    ),
    ErrorReason.CONTAINER_WITHOUT_VOLUME: FailureWords(
        "The IDE has lost its files",
        "The IDE runs without the complete home.",
        "Try again: CodeHub stops the IDE, looks for the files and continues from there.",
    ),
    ErrorReason.ARCHIVE_CORRUPTED: FailureWords(
        "The archive is damaged",
        "The archive does not match its checksum, so CodeHub restored nothing.",
        "If you can repair it, do that and try again. CodeHub gives up nothing before you decide.",
    ),
}
UNKNOWN_FAILURE = FailureWords("Something went wrong", "No details were recorded.", _TRY_AGAIN)
DELETION_FAILED = "It could not be deleted"

CHOICES = {
    RecoverChoice.RETRY: ChoiceWords(
        "Try again", "check again and try once more, without giving anything up"
    ),
    RecoverChoice.WAIT: ChoiceWords(
        "Wait for the node", "wait until the node is back; then it continues by itself with all files"
    ),
    RecoverChoice.RESTORE_ARCHIVE: ChoiceWords(
        "Restore this archive",
        "go back to an archive",
        "The home will not have files newer than the archive, and what is left on the disk is replaced. "
        "All archives are kept.",
    ),
    RecoverChoice.USE_DISK: ChoiceWords(
        "Use what is on the disk",
        "continue with what is left on the disk",
        "The disk may hold only some of the files. All archives are kept.",
    ),
    RecoverChoice.START_EMPTY: ChoiceWords(
        "Start with an empty home",
        "start with an empty home",
        "The home will have none of the earlier files, and what is left on the disk is removed. "
        "All archives are kept.",
    ),
}

# For a home on a lost node, whose disk is kept.
OUT_OF_REACH = FailureWords(
    "Its files are out of reach",
    "The files are on the disk of a node that does not respond.",
    "If the node comes back, the workspace continues by itself with all files. Nothing is given up before "
    "you decide.",
)
RESTORE_ELSEWHERE = ChoiceWords(
    CHOICES[RecoverChoice.RESTORE_ARCHIVE].label,
    "go back to the last archive, on another node",
    "The home will not have files newer than the archive, also if the node comes back later. The disk on "
    "the lost node is kept, so that an administrator can get files from it then.",
)
LAST_ARCHIVE = "The last archive is from {time} UTC."
LAST_ARCHIVE_UNDATED = "There is an archive, but nobody recorded when it was made."
NO_ARCHIVE = "There is no archive of it."
CONTINUES_WITH_NODE = "It continues by itself when the node is back."


def choice_words(choice: RecoverChoice, *, out_of_reach: bool = False) -> ChoiceWords:
    """Return what a choice does and costs; it costs less if the old disk is kept."""
    kept = out_of_reach and choice is RecoverChoice.RESTORE_ARCHIVE
    return RESTORE_ELSEWHERE if kept else CHOICES[choice]


NOT_OBSERVED = "Not checked yet."
# In the order in which they are shown.
CONDITIONS = {
    "infra.container_ready": ConditionWords(
        "IDE",
        {
            Reason.READY: "The IDE is running.",
            Reason.NOT_READY: "The IDE has stopped or does not answer.",
            Reason.ABSENT: "No IDE is running.",
        },
    ),
    "infra.container_answers": ConditionWords(
        "health check",
        {Reason.NOT_ANSWERING: "The IDE does not answer right now. If this lasts, CodeHub restarts it."},
        only_if_false=True,
    ),
    "infra.configuration_current": ConditionWords("configuration", only_if_false=True),
    "storage.volume_ready": ConditionWords(
        "disk",
        {
            Reason.COMPLETE: "The files are on its disk.",
            Reason.INCOMPLETE: "Its disk holds only some of the files. The archive has all of them.",
            Reason.VANISHED: "Its disk has disappeared, with the newest files.",
            Reason.ABSENT: "It has no disk at the moment.",
        },
    ),
    "storage.volume_reachable": ConditionWords("node", only_if_false=True),
    "storage.archive_ready": ConditionWords(
        "archive",
        {
            Reason.READABLE: "Its archive is there and readable.",
            Reason.GONE: "Its archive has disappeared.",
            Reason.NO_ARCHIVE: "It has no archive yet.",
        },
    ),
    "policy.healthy": ConditionWords(
        "health", {Reason.HEALTHY: "Everything is in order."}, otherwise="Something is wrong."
    ),
}

PROVIDERS = {
    Resource.CONTAINER: "the engine that runs workspaces",
    Resource.VOLUME: "the disk storage",
    Resource.ARCHIVE: "the archive store",
}

# Warnings about disk space, by level.
DISK_LEVELS = {
    DiskLevel.OK: "",
    DiskLevel.HIGH: "It uses more than 80 % of its {limit} of disk space.",
    DiskLevel.CRITICAL: "It uses more than 90 % of its {limit} of disk space. Delete files: above the "
    "limit, it does not start again.",
    DiskLevel.OVER: "It uses more than its {limit} of disk space, so it does not start again. Delete files "
    "while it runs, or ask an administrator for more space.",
}

# The audit trail: after the name of the person or program.
EVENTS = {
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
    "operation_released": "paused during an outage",
}
STATE_REQUESTS = {
    DesiredState.RUNNING: "asked to start it",
    DesiredState.STANDBY: "asked to stop it",
    DesiredState.ARCHIVED: "asked to archive it",
    DesiredState.DELETED: "asked to delete it",
}
PURGE_REQUEST = "asked to delete it for good"
# Programs of CodeHub that act by themselves.
CODEHUB_ACTORS = frozenset({"control-plane", "ttl"})
UNUSED = "because nobody used it"

IDES = {"code-server": "VS Code (code-server)", "jupyterlab": "JupyterLab"}

# On the sign-in page, with the name of the identity provider.
SIGN_IN_PROBLEMS = {
    SignInProblem.EXPIRED: "This sign-in took too long or was already used. Sign in again.",
    SignInProblem.REFUSED: "{provider} did not sign you in. Try again, or ask an administrator.",
    SignInProblem.REJECTED: (
        "The response of {provider} could not be verified. Try again, or tell an administrator."
    ),
    SignInProblem.UNAVAILABLE: "{provider} is not responding. Try again in a minute.",
    SignInProblem.NOT_ALLOWED: (
        "You are not in a group that may use CodeHub. Ask an administrator to add you to one."
    ),
    SignInProblem.DISABLED: "Your account is disabled. Ask an administrator to enable it.",
}
# Who may open a port.
AUDIENCES = {
    Audience.USERS: "users who are signed in",
    Audience.PUBLIC: "everyone with the link",
}
ONLY_OWNER = "its owner only"

ALWAYS_REFUSED = "Private and local addresses and CodeHub's own servers are always refused."
NOT_ENFORCED = "Workspaces connect directly here: they do not use the egress gateway."
# Labels of the audit log's actions.
AUDIT_ACTIONS = {
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
    "port_unshare": "Port no longer shared",
}
