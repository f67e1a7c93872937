"""What the clients of one user know, and what they must be told to know the present."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from api.live.wire import RETRY_MILLISECONDS, Frame
from codehub.domain.states import Operation

UPDATED, DELETED, SNAPSHOT = "workspace_updated", "workspace_deleted", "snapshot"
DIGEST_BYTES = 16
MARKS = 1 << 8 * DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class LiveWorkspace:
    """A workspace as its owner sees it: the JSON text of the whole object, which must not vary by itself."""

    id: str
    json: str
    operation: Operation = Operation.NONE
    op_started_at: datetime | None = None


class SentState:
    """The digest of each workspace as it was last told.

    Their sum is the mark: the id of every frame is the mark of what a client knows once it has that frame.
    It depends on content alone, so any process can compare it, and equal marks mean equal content: the
    chance of an error is that of two equal digests.
    """

    __slots__ = ("_digests", "_mark")

    def __init__(self) -> None:
        self._digests: dict[str, int] = {}
        self._mark = 0

    @property
    def mark(self) -> str:
        return f"{self._mark:0{2 * DIGEST_BYTES}x}"

    def learn(self, rows: Sequence[LiveWorkspace], asked: Collection[str] | None) -> list[Frame]:
        """Take in what was found of those asked for, or of all; what is missing is gone."""
        known = self._digests.keys()
        gone = (known if asked is None else known & set(asked)) - {row.id for row in rows}
        frames = [self._forget(workspace_id) for workspace_id in sorted(gone)]
        for row in rows:
            digest = _digest(row)
            if self._digests.get(row.id) != digest:
                frames.append(self._replace(row, digest))
        return frames

    def snapshot(self, rows: Sequence[LiveWorkspace]) -> Frame:
        """All of them, as just learnt."""
        data = f'{{"workspaces": [{", ".join(row.json for row in rows)}]}}'
        return Frame(SNAPSHOT, data, self.mark, RETRY_MILLISECONDS)

    def _forget(self, workspace_id: str) -> Frame:
        self._mark = (self._mark - self._digests.pop(workspace_id)) % MARKS
        return Frame(DELETED, f'{{"id": "{workspace_id}"}}', self.mark)

    def _replace(self, row: LiveWorkspace, digest: int) -> Frame:
        self._mark = (self._mark - self._digests.get(row.id, 0) + digest) % MARKS
        self._digests[row.id] = digest
        return Frame(UPDATED, row.json, self.mark)


def _digest(row: LiveWorkspace) -> int:
    content = f"{row.id} {row.json}".encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest())
