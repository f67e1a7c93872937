"""A simulated world: the container, volume and archives of one workspace, and their faults."""

from dataclasses import dataclass, field
from typing import TypeVar

from codehub.domain.conditions import (
    ArchiveFact,
    ContainerFact,
    LostNode,
    Observation,
    Resource,
    VolumeFact,
)
from codehub.domain.failures import Permanent, Transient
from codehub.domain.states import ErrorReason

Fact = TypeVar("Fact")

# The content of a home is the number of its last edit.
EMPTY = 0
PARTIAL = -1
LOST = LostNode("The home is on a disk of a node that does not respond.", since=None)


@dataclass
class World:
    """What really exists."""

    container: ContainerFact = ContainerFact.ABSENT
    volume: int | None = None
    # The node whose disk holds the volume does not respond.
    node_is_lost: bool = False
    # What is on disks of nodes whose claims were given up.
    set_aside: set[int] = field(default_factory=set)
    archives: dict[str, int] = field(default_factory=dict)
    metas: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)
    down: set[Resource] = field(default_factory=set)
    failing_calls: int = 0

    def observe(self, archive_key: str | None) -> Observation:
        return Observation(
            container=self._seen(Resource.CONTAINER, self.container, ContainerFact.UNREACHABLE),
            volume=self._seen(Resource.VOLUME, self._volume_fact(), VolumeFact.UNREACHABLE),
            archive=self._seen(
                Resource.ARCHIVE,
                ArchiveFact.PRESENT if self.is_committed(archive_key) else ArchiveFact.ABSENT,
                ArchiveFact.UNREACHABLE,
            ),
            lost_node=LOST if self.node_is_lost and Resource.VOLUME not in self.down else None,
        )

    def is_committed(self, key: str | None) -> bool:
        return key in self.archives and key in self.metas

    def holds(self, content: int) -> bool:
        """Return whether a good copy of this content exists; an empty home can always be recreated."""
        return content in {EMPTY, self.volume, *self.set_aside} or any(
            content == archived and self.is_committed(key) and key not in self.damaged
            for key, archived in self.archives.items()
        )

    def create_volume(self) -> None:
        self._reach(Resource.VOLUME)
        if self.volume is None:
            self.volume = EMPTY

    def begin_restore(self, key: str | None) -> int:
        self._reach(Resource.VOLUME)
        self._reach(Resource.ARCHIVE)
        if key is None or not self.is_committed(key):
            raise Permanent(ErrorReason.DATA_LOST, "archive not found")
        if key in self.damaged:
            # The job creates a missing volume before it has read the whole archive.
            self.volume = PARTIAL if self.volume is None else self.volume
            raise Permanent(ErrorReason.ARCHIVE_CORRUPTED, "checksum mismatch")
        self.volume = PARTIAL
        return self.archives[key]

    def finish_restore(self, content: int) -> None:
        self._reach(Resource.VOLUME)
        self.volume = content

    def start_container(self) -> None:
        self._reach(Resource.CONTAINER)
        if self.node_is_lost:
            raise Transient(ErrorReason.UNREACHABLE, "the node does not respond")
        if self.volume is None:
            raise Transient(ErrorReason.ACTION_FAILED, "the volume does not exist")
        if self.container is ContainerFact.UNHEALTHY:
            # A start waits for it, then removes it.
            self.container = ContainerFact.ABSENT
            raise Transient(ErrorReason.ACTION_FAILED, "the IDE did not become ready")
        self.container = ContainerFact.READY

    def remove_container(self) -> None:
        self._reach(Resource.CONTAINER)
        self.container = ContainerFact.ABSENT

    def upload(self, key: str) -> None:
        self._reach(Resource.ARCHIVE)
        if self.volume is None:
            raise Transient(ErrorReason.ACTION_FAILED, "the volume does not exist")
        self.archives[key] = self.volume

    def upload_empty(self, key: str) -> None:
        self._reach(Resource.ARCHIVE)
        self.archives[key] = EMPTY

    def upload_meta(self, key: str) -> None:
        self._reach(Resource.ARCHIVE)
        self.metas.add(key)

    def observe_archive(self, key: str | None) -> ArchiveFact:
        self._reach(Resource.ARCHIVE)
        return ArchiveFact.PRESENT if self.is_committed(key) else ArchiveFact.ABSENT

    def require_archive(self, key: str | None) -> None:
        self._reach(Resource.ARCHIVE)
        if not self.is_committed(key):
            raise Permanent(ErrorReason.DATA_LOST, "archive not found")

    def remove_volume(self) -> None:
        self._reach(Resource.VOLUME)
        if self.container is not ContainerFact.ABSENT:
            raise Transient(ErrorReason.ACTION_FAILED, "the volume is in use")
        self.volume = None

    def set_volume_aside(self) -> None:
        """Give the volume on the lost node up, and keep what is on it."""
        assert self.node_is_lost, "the home is within reach"
        assert self.container is ContainerFact.ABSENT, "an instance uses the volume"
        if self.volume is not None:
            self.set_aside.add(self.volume)
        self.volume, self.node_is_lost = None, False

    def remove_archive(self, key: str) -> None:
        self.archives.pop(key)
        self.metas.discard(key)
        self.damaged.discard(key)

    def heal(self) -> None:
        self.down.clear()
        self.failing_calls = 0
        self.node_is_lost = False

    def _reach(self, resource: Resource) -> None:
        if self.failing_calls:
            self.failing_calls -= 1
            raise Transient(ErrorReason.ACTION_FAILED, f"the {resource} provider failed")
        if resource in self.down or (resource is Resource.VOLUME and self.node_is_lost):
            raise Transient(ErrorReason.UNREACHABLE, f"{resource} provider is down")

    def _volume_fact(self) -> VolumeFact:
        if self.node_is_lost:
            return VolumeFact.UNREACHABLE
        return VolumeFact.ABSENT if self.volume is None else VolumeFact.PRESENT

    def _seen(self, resource: Resource, fact: Fact, unreachable: Fact) -> Fact:
        return unreachable if resource in self.down else fact
