"""An outage of S3 must not lock people out: an upload that cannot go on gives its claim back."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.domain.states import Operation
from gameday.checks.rows import Row

# Of a calm, in which only S3 is away: a job tries for a while before it gives up.
PATIENCE = timedelta(seconds=60)


@dataclass(frozen=True)
class LockedOut:
    """A workspace whose owner is refused, although its home is on the disk."""

    workspace_id: str
    words: str


class OutageWatch:
    """Knows since when nothing but S3 has been away, without a break."""

    def __init__(self) -> None:
        self._since: datetime | None = None

    def notice(self, now: datetime, *, only_s3_is_away: bool) -> bool:
        """Whether that has lasted so long that nobody may be locked out any more."""
        self._since = (self._since or now) if only_s3_is_away else None
        return self._since is not None and now - self._since >= PATIENCE


def is_uploading(row: Row) -> bool:
    """Return whether an upload is claimed but not committed, so that the home is still on disk."""
    return row.operation is Operation.ARCHIVING and row.volume_is_complete


def find_locked_out(rows: Iterable[Row], now: datetime) -> Iterator[LockedOut]:
    """Whoever has held the same claim for too long, with nothing uploaded yet."""
    for row in rows:
        if is_uploading(row) and row.claimed_at is not None and now - row.claimed_at >= PATIENCE:
            yield LockedOut(row.workspace_id, f"It has been claimed for ARCHIVING since {row.claimed_at}.")
