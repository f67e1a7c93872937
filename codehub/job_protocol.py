"""The input and the output of a storage job, which is a program of its own."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from codehub.domain.failures import Failure, Permanent, Transient, is_terminal
from codehub.domain.states import ErrorReason
from codehub.ports import ArchiveStore, ExpectedArchive, Progress, Report, StoredArchive

# Exit codes, for a job that ended without a final event.
REASONS = {
    10: ErrorReason.DATA_LOST,
    11: ErrorReason.UNREACHABLE,
    12: ErrorReason.ARCHIVE_CORRUPTED,
    13: ErrorReason.ACTION_FAILED,
}
MESSAGE_LENGTH = 500


@dataclass
class JobOutput:
    """The events of a job: progress is reported at once, the last event says how the job ended."""

    report: Report
    stderr: str = ""
    last: dict[str, Any] = field(default_factory=dict)
    _progress: dict[str, Any] = field(default_factory=dict)

    def feed(self, line: bytes) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        if not isinstance(event, dict):
            return
        if event == self._progress:
            return  # no progress since the last report
        if event.get("event") == "progress":
            self._progress = event
            self.report(Progress(event["phase"], event["bytes"], event["total"]))
        else:
            self.last = event

    def check(self, returncode: int | None) -> None:
        """Raise a Failure unless the job succeeded."""
        if returncode != 0 or self.last.get("event") != "done":
            raise self._failure(returncode)

    def stored_archive(self, key: str) -> StoredArchive:
        return StoredArchive(key, self.last["bytes"], self.last["sha256"])

    def _failure(self, returncode: int | None) -> Failure:
        if self.last.get("event") == "error":
            reason, message = ErrorReason(self.last["reason"]), self.last["message"]
        else:
            reason = REASONS.get(returncode or 0, ErrorReason.ACTION_FAILED)
            message = f"The storage job ended with status {returncode}: {self.stderr or 'no output'}"
        kind = Permanent if is_terminal(reason) else Transient
        return kind(reason, str(message)[:MESSAGE_LENGTH])


def job_request(
    store: ArchiveStore, key: str, data_dir: str, expected: ExpectedArchive, owner: int | None = None
) -> bytes:
    """Return the JSON for the job's stdin, where secrets are safe; a command line is visible to others.

    A new archive records `owner` as the user and group of every file; None means the real ones.
    """
    access = asdict(store)
    bucket = access.pop("bucket")
    recorded = {
        "expected_size": expected.size_bytes,
        "expected_sha256": expected.sha256,
        "archived_owner": owner,
    }
    known = {name: value for name, value in recorded.items() if value is not None}
    location = {"archive_url": f"s3://{bucket}/{key}", "data_dir": data_dir}
    return json.dumps(access | location | known).encode()
