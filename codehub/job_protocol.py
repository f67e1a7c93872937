"""What a storage job says about itself, in the control plane's words."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from codehub.domain.failures import Failure, Permanent, Transient, is_terminal
from codehub.domain.states import ErrorReason
from codehub.ports import ArchiveStore, ExpectedArchive, Progress, Report, StoredArchive

# The job's exit codes, for one that ended without a last word.
REASONS = {
    10: ErrorReason.DATA_LOST,
    11: ErrorReason.UNREACHABLE,
    12: ErrorReason.ARCHIVE_CORRUPTED,
    13: ErrorReason.ACTION_FAILED,
}
MESSAGE_LENGTH = 500


@dataclass
class JobOutput:
    """Progress is passed on at once, and only progress; the last line tells how it ended."""

    report: Report
    complaint: str = ""
    last: dict[str, Any] = field(default_factory=dict)
    _progress: dict[str, Any] = field(default_factory=dict)

    def take(self, line: bytes) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        if not isinstance(event, dict):
            return
        if event == self._progress:
            return  # it runs, but nothing has moved
        if event.get("event") == "progress":
            self._progress = event
            self.report(Progress(event["phase"], event["bytes"], event["total"]))
        else:
            self.last = event

    def check(self, returncode: int | None) -> None:
        """Raise unless the job has succeeded and said so."""
        if returncode != 0 or self.last.get("event") != "done":
            raise self._failure(returncode)

    def stored_as(self, key: str) -> StoredArchive:
        return StoredArchive(key, self.last["bytes"], self.last["sha256"])

    def _failure(self, returncode: int | None) -> Failure:
        if self.last.get("event") == "error":
            reason, message = ErrorReason(self.last["reason"]), self.last["message"]
        else:
            reason = REASONS.get(returncode or 0, ErrorReason.ACTION_FAILED)
            message = f"The storage job ended with status {returncode}: {self.complaint or 'it said nothing'}"
        kind = Permanent if is_terminal(reason) else Transient
        return kind(reason, str(message)[:MESSAGE_LENGTH])


def job_request(store: ArchiveStore, key: str, data_dir: str, expected: ExpectedArchive) -> bytes:
    access = asdict(store)
    bucket = access.pop("bucket")
    recorded = {"expected_size": expected.size_bytes, "expected_sha256": expected.sha256}
    known = {name: value for name, value in recorded.items() if value is not None}
    place = {"archive_url": f"s3://{bucket}/{key}", "data_dir": data_dir}
    return json.dumps(access | place | known).encode()
