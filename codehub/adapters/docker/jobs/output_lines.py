"""Lines out of the pieces in which a job's output arrives."""

import logging
from dataclasses import dataclass, field

from codehub.job_output import JobOutput

STDERR = 2
LINE_LIMIT = 1_000_000
SHOWN_LENGTH = 1000
_log = logging.getLogger(__name__)


@dataclass
class JobLines:
    """What it says on stdout is for us, what it says on stderr for the log."""

    output: JobOutput
    _pending: dict[int, bytes] = field(default_factory=dict)

    def take(self, stream: int, data: bytes) -> None:
        *lines, rest = (self._pending.get(stream, b"") + data).split(b"\n")
        self._pending[stream] = rest[-LINE_LIMIT:]
        for line in lines:
            if stream == STDERR:
                self._complain(line)
            else:
                self.output.take(line)

    def _complain(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()[:SHOWN_LENGTH]
        self.output.complaint = text
        _log.warning("storage job: %s", text)
