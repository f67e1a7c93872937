"""The error policy: which reasons end an operation, how long to wait before a retry, what to tell people."""

from datetime import datetime

from codehub.domain.states import ErrorReason

MAX_RETRY = 3
FIRST_DELAY_SECONDS = 5.0
DELAY_FACTOR = 3.0
MAX_DELAY_SECONDS = 60.0
# A purge never gives up: after the last quick attempt it continues at these intervals.
FIRST_PURGE_DELAY_SECONDS = 60.0
MAX_PURGE_DELAY_SECONDS = 3600.0
MAX_DOUBLINGS = 10
JITTER = 0.2

RETRYABLE = frozenset({ErrorReason.ACTION_FAILED, ErrorReason.UNREACHABLE})
TERMINAL = frozenset(ErrorReason) - RETRYABLE

EXPLANATIONS = {
    ErrorReason.TIMEOUT: "The operation took too long. Recover to try again.",
    ErrorReason.RETRY_EXCEEDED: f"The operation failed {MAX_RETRY} times. Recover to try again.",
    ErrorReason.ACTION_FAILED: "A step failed. CodeHub tries it again.",
    ErrorReason.DATA_LOST: (
        "The files are missing. Put them back and recover with `retry`, or choose "
        "`restore_archive` for the last archive or `start_empty` for a new home."
    ),
    ErrorReason.UNREACHABLE: "A service could not be reached. CodeHub tries again.",
    ErrorReason.IMAGE_PULL_FAILED: (
        "The image could not be pulled, or is not allowed. Check its name, the registry and the images that "
        "administrators allow, then recover."
    ),
    ErrorReason.CONTAINER_WITHOUT_VOLUME: (
        "A container exists without a complete home. Recover to remove the container and check again."
    ),
    ErrorReason.ARCHIVE_CORRUPTED: (
        "The archive does not match its checksum, so nothing was restored. Repair it and recover with "
        "`retry`, or choose `restore_archive` for another archive or `start_empty` for a new home."
    ),
}


class Failure(Exception):
    """A failure with a reason that the error policy knows; `message` is for people."""

    def __init__(self, reason: ErrorReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Permanent(Failure):
    """Retrying the same step cannot help."""


class Transient(Failure):
    """Retrying the same step may help."""


class OutOfReach(Transient):
    """The home exists, but the node whose disk holds it does not respond; `since` is None if unknown."""

    def __init__(self, message: str, since: datetime | None) -> None:
        super().__init__(ErrorReason.UNREACHABLE, message)
        self.since = since


def within_reach() -> Transient:
    return Transient(
        ErrorReason.ACTION_FAILED, "The home is not on a lost node, so it is not given up for an archive."
    )


def is_terminal(reason: ErrorReason | None) -> bool:
    return reason in TERMINAL


def retry_delay_seconds(reason: ErrorReason, failed_attempts: int, jitter: float) -> float | None:
    """Return the wait after the n-th failed attempt, or None to give up; `jitter` in [-1, 1] spreads it."""
    if is_terminal(reason) or failed_attempts >= MAX_RETRY:
        return None
    delay = min(FIRST_DELAY_SECONDS * DELAY_FACTOR ** (failed_attempts - 1), MAX_DELAY_SECONDS)
    return delay * (1 + JITTER * jitter)


def purge_delay_seconds(failed_attempts: int, jitter: float) -> float:
    """Return the wait of a purge after an attempt that would have ended any other operation."""
    doublings = min(max(failed_attempts - MAX_RETRY, 0), MAX_DOUBLINGS)
    delay = min(FIRST_PURGE_DELAY_SECONDS * 2.0**doublings, MAX_PURGE_DELAY_SECONDS)
    return delay * (1 + JITTER * jitter)
