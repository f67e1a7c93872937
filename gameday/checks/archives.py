"""Archives: what something needs stays, what nothing needs goes, each in its time."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from codehub.adapters.s3.archives import S3Archives
from codehub.domain.garbage import ArchiveOwner, Graces, is_protected
from codehub.domain.naming import META_SUFFIX, parse_archive_key
from codehub.domain.states import Phase
from gameday.checks.rows import Row

# The collector's clock is that of its round, which may have begun a while before it looked; a collector that
# knows no grace at all removes within a third of it.
SURELY_WITHIN_GRACE = 0.6


@dataclass(frozen=True)
class Loss:
    """An archive that is not there although it should be."""

    workspace_id: str
    key: str
    words: str


@dataclass
class ArchiveWatch:
    """Follows every archive from look to look."""

    graces: Graces
    _needed_at: dict[str, datetime] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def look(self, rows: Iterable[Row], committed: Set[str], now: datetime) -> Iterator[Loss]:
        """The rows must have been read before the listing: a key is stored after its archive."""
        owners = {str(row.workspace_id): row.owner_of_archives for row in rows}
        yield from self._missing(owners, committed, now)
        # An error protects every archive while it lasts. One that is over starts no grace anew: between
        # two rounds of the collector, nobody has seen it.
        calm = {workspace_id: _without_error(owner) for workspace_id, owner in owners.items()}
        for key in self._known - committed:
            since = now - self._needed_at.get(key, now - self.graces.orphan)
            if since < SURELY_WITHIN_GRACE * self.graces.orphan:
                seconds = since.total_seconds()
                yield _loss(key, f"The archive {key} was removed {seconds:.1f} s after something needed it.")
        self._known = set(committed)
        for key in committed:
            if is_needed(key, calm, now, self.graces):
                self._needed_at[key] = now

    def _missing(
        self, owners: Mapping[str, ArchiveOwner], committed: Set[str], now: datetime
    ) -> Iterator[Loss]:
        for workspace_id, owner in owners.items():
            key = owner.archive_key
            if key is not None and key not in committed and is_needed(key, owners, now, self.graces):
                yield Loss(workspace_id, key, f"Its archive {key} is not in the store.")


def _without_error(owner: ArchiveOwner) -> ArchiveOwner:
    phase = Phase.ARCHIVED if owner.phase is Phase.ERROR else owner.phase
    return replace(owner, phase=phase, error_reason=None)


def _loss(key: str, words: str) -> Loss:
    name = parse_archive_key(key)
    return Loss(name.workspace_id if name else "", key, words)


def is_needed(key: str, owners: Mapping[str, ArchiveOwner], now: datetime, graces: Graces) -> bool:
    name = parse_archive_key(key)
    return name is not None and is_protected(key, name, owners.get(name.workspace_id), now, graces)


def committed_of(objects: Set[str]) -> set[str]:
    """Archives whose meta is there too."""
    return {key for key in objects if not key.endswith(META_SUFFIX) and key + META_SUFFIX in objects}


def unneeded_of(objects: Set[str], rows: Iterable[Row], now: datetime, graces: Graces) -> set[str]:
    """Archives, whole or in part, that nothing needs."""
    owners = {str(row.workspace_id): row.owner_of_archives for row in rows}
    keys = {each.removesuffix(META_SUFFIX) for each in objects}
    return {key for key in keys if not is_needed(key, owners, now, graces)}


async def list_objects(archives: S3Archives) -> set[str]:
    return {each.key async for each in archives.list_all()}
