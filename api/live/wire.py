"""Server-sent events, and which events bring a client up to date."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from codehub.domain.states import Operation

RETRY_MILLISECONDS = 2000
UPDATED, DELETED, SNAPSHOT = "workspace_updated", "workspace_deleted", "snapshot"
DIGEST_BYTES = 16
DIGESTS = 1 << 8 * DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event; a browser that reconnects sends its id as Last-Event-ID."""

    event: str
    data: str
    id: str | None = None
    retry: int | None = None

    def encode(self) -> bytes:
        lines = [f"event: {self.event}"]
        if self.id is not None:
            lines.append(f"id: {self.id}")
        if self.retry is not None:
            lines.append(f"retry: {self.retry}")
        # A line break would end the field; in JSON it can only be white space between tokens.
        lines += [f"data: {part}" for part in self.data.replace("\r", "\n").split("\n")]
        return ("\n".join(lines) + "\n\n").encode()


# Without an id, so that the browser keeps the last one.
HEARTBEAT = Frame("heartbeat", "{}").encode()
UNCHANGED = Frame("heartbeat", "{}", retry=RETRY_MILLISECONDS).encode()


def goodbye(retry_milliseconds: int) -> bytes:
    """Encode the end of a stream: a comment, and when to reconnect."""
    return f": goodbye\nretry: {retry_milliseconds}\n\n".encode()


@dataclass(frozen=True, slots=True)
class LiveWorkspace:
    """A workspace as its owner sees it; equal workspaces must have equal JSON."""

    id: str
    json: str
    operation: Operation = Operation.NONE
    op_started_at: datetime | None = None


class SentState:
    """The workspaces of one user as last sent, kept as digests.

    A frame's id is the sum of the digests of everything that a client knows once it has that frame. The id
    depends only on content, so any process can tell whether a client that reconnects is up to date.
    """

    __slots__ = ("_digests", "_sum")

    def __init__(self) -> None:
        self._digests: dict[str, int] = {}
        self._sum = 0

    @property
    def event_id(self) -> str:
        return f"{self._sum:0{2 * DIGEST_BYTES}x}"

    def update(self, rows: Sequence[LiveWorkspace], asked: Collection[str] | None) -> list[Frame]:
        """Store the rows and return the frames to send; ids in `asked` (None: all) without a row are gone."""
        known = self._digests.keys()
        gone = (known if asked is None else known & set(asked)) - {row.id for row in rows}
        frames = [self._remove(workspace_id) for workspace_id in sorted(gone)]
        for row in rows:
            digest = _digest(row)
            if self._digests.get(row.id) != digest:
                frames.append(self._replace(row, digest))
        return frames

    def snapshot(self, rows: Sequence[LiveWorkspace]) -> Frame:
        """Return a frame with all workspaces, which must be those last stored."""
        data = f'{{"workspaces": [{", ".join(row.json for row in rows)}]}}'
        return Frame(SNAPSHOT, data, self.event_id, RETRY_MILLISECONDS)

    def _remove(self, workspace_id: str) -> Frame:
        self._sum = (self._sum - self._digests.pop(workspace_id)) % DIGESTS
        return Frame(DELETED, f'{{"id": "{workspace_id}"}}', self.event_id)

    def _replace(self, row: LiveWorkspace, digest: int) -> Frame:
        self._sum = (self._sum - self._digests.get(row.id, 0) + digest) % DIGESTS
        self._digests[row.id] = digest
        return Frame(UPDATED, row.json, self.event_id)


def _digest(row: LiveWorkspace) -> int:
    content = f"{row.id} {row.json}".encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest())
