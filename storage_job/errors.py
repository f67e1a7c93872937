"""Why a job failed: the reason the control plane acts on and the sentence a person reads."""

from enum import StrEnum


class Reason(StrEnum):
    DATA_LOST = "DataLost"
    UNREACHABLE = "Unreachable"
    ARCHIVE_CORRUPTED = "ArchiveCorrupted"
    ACTION_FAILED = "ActionFailed"


# Clear of 1 and 2 (Python's own) and of 126 and up (shells, signals), so a code names exactly one reason.
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
        advice = "restore an older archive or start empty"
        super().__init__(Reason.ARCHIVE_CORRUPTED, f"The archive cannot be trusted: {detail}; {advice}.")
        self.detail = detail


def failed(message: str) -> JobError:
    return JobError(Reason.ACTION_FAILED, message)


def unreachable(detail: str) -> JobError:
    told = " ".join(detail.split())[:300]
    return JobError(
        Reason.UNREACHABLE, f"The archive store gave no good answer ({told}); check it and its credentials."
    )
