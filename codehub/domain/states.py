"""The terms of the lifecycle: phases, operations, desired states, error reasons."""

from enum import StrEnum


class Phase(StrEnum):
    """Where a workspace is, computed from observations."""

    PENDING = "PENDING"
    ARCHIVED = "ARCHIVED"
    STANDBY = "STANDBY"
    RUNNING = "RUNNING"
    ERROR = "ERROR"
    DELETING = "DELETING"
    DELETED = "DELETED"


class DesiredState(StrEnum):
    """Where its owner wants a workspace to be."""

    ARCHIVED = "ARCHIVED"
    STANDBY = "STANDBY"
    RUNNING = "RUNNING"
    DELETED = "DELETED"


class Operation(StrEnum):
    """What is being done to a workspace; one operation at a time."""

    NONE = "NONE"
    PROVISIONING = "PROVISIONING"
    RESTORING = "RESTORING"
    STARTING = "STARTING"
    STOPPING = "STOPPING"
    ARCHIVING = "ARCHIVING"
    CREATE_EMPTY_ARCHIVE = "CREATE_EMPTY_ARCHIVE"
    DELETING = "DELETING"


class ErrorReason(StrEnum):
    """Why an operation failed, or which invariant is violated."""

    TIMEOUT = "Timeout"
    RETRY_EXCEEDED = "RetryExceeded"
    ACTION_FAILED = "ActionFailed"
    DATA_LOST = "DataLost"
    UNREACHABLE = "Unreachable"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_WITHOUT_VOLUME = "ContainerWithoutVolume"
    ARCHIVE_CORRUPTED = "ArchiveCorrupted"


# An operation moves between neighbors; a path goes only up or only down.
LEVELS = {Phase.PENDING: 0, Phase.ARCHIVED: 5, Phase.STANDBY: 10, Phase.RUNNING: 20}

DESIRED_LEVELS = {DesiredState.ARCHIVED: 5, DesiredState.STANDBY: 10, DesiredState.RUNNING: 20}


def parse_desired_state(text: str) -> DesiredState:
    """Parse a desired state; PENDING is an older name of ARCHIVED."""
    return DesiredState.ARCHIVED if text == "PENDING" else DesiredState(text)
