"""Why a job failed: a reason for the control plane and a message for people."""

from enum import StrEnum


class Reason(StrEnum):
    DATA_LOST = "DataLost"
    UNREACHABLE = "Unreachable"
    ARCHIVE_CORRUPTED = "ArchiveCorrupted"
    ACTION_FAILED = "ActionFailed"


# Python uses 1 and 2, shells and signals 126 and above; each of these names exactly one reason.
EXIT_CODES = {
    Reason.DATA_LOST: 10,
    Reason.UNREACHABLE: 11,
    Reason.ARCHIVE_CORRUPTED: 12,
    Reason.ACTION_FAILED: 13,
}
EXIT_INVALID_REQUEST = 2


class JobError(Exception):
    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class InvalidRequest(JobError):
    def __init__(self, message: str) -> None:
        super().__init__(Reason.ACTION_FAILED, message)


class CorruptedArchive(JobError):
    def __init__(self, detail: str) -> None:
        advice = "Restore an older archive or start with an empty home."
        super().__init__(Reason.ARCHIVE_CORRUPTED, f"The archive failed verification: {detail}. {advice}")
        self.detail = detail


def action_failed(message: str) -> JobError:
    return JobError(Reason.ACTION_FAILED, message)


def unreachable(detail: str) -> JobError:
    one_line = " ".join(detail.split())[:300]
    return JobError(
        Reason.UNREACHABLE,
        f"The archive store did not respond as expected ({one_line}). Check the store and its credentials.",
    )
