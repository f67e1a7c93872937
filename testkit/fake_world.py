"""The state that the fakes share: what exists, and the failures that tests inject."""

import asyncio
import hashlib
import json
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime

from codehub.domain.conditions import LostNode, Resource, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import meta_key
from codehub.domain.states import ErrorReason
from codehub.ports import Measurement, StoredArchive

Home = dict[str, bytes]
IMAGE = "codehub-test-ide"
NEVER_READY_IMAGE = "codehub-test-never-ready"
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class FakeInstance:
    image_ref: str
    alive: bool = True
    answers: bool = True
    made_from: dict[str, str] = field(default_factory=dict)
    log: list[bytes] = field(default_factory=lambda: [b"listening\n"])
    ports: dict[int, str] = field(default_factory=dict)


@dataclass
class FakeObject:
    content: bytes
    modified_at: datetime = LONG_AGO


@dataclass
class FakeWorld:
    """The state of all fake providers.

    `down` makes a provider unreachable.
    `failures["volumes.remove"].append(error)` makes the next such call raise.
    `gates["jobs.archive"] = asyncio.Event()` holds such calls after they have begun until it is set.
    `dies_with["jobs.archive"] = Resource.ARCHIVE` makes that provider go down during such a call.
    `configuration` is what new instances are made from.
    `start_seconds` is how long a start waits for a running instance to answer.
    `calls` lists every call in order.
    """

    volumes: dict[WorkspaceId, Home] = field(default_factory=dict)
    # The homes on nodes that do not respond.
    lost_nodes: dict[WorkspaceId, LostNode] = field(default_factory=dict)
    # The homes that were set aside, on whatever node.
    set_aside: list[Home] = field(default_factory=list)
    # What a measurement finds; nothing by default.
    sizes: dict[WorkspaceId, Measurement] = field(default_factory=dict)
    instances: dict[WorkspaceId, FakeInstance] = field(default_factory=dict)
    objects: dict[str, FakeObject] = field(default_factory=dict)
    uploads: dict[str, datetime] = field(default_factory=dict)
    images: set[str] = field(default_factory=lambda: {"", "default", IMAGE, NEVER_READY_IMAGE})
    configuration: dict[str, str] = field(default_factory=dict)
    start_seconds: float = 0.0
    registry: set[str] = field(default_factory=set)
    now: datetime = LONG_AGO
    # The identity of the home store.
    identity: str | None = None
    down: set[Resource] = field(default_factory=set)
    failures: defaultdict[str, deque[Exception]] = field(default_factory=lambda: defaultdict(deque))
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    dies_with: dict[str, Resource] = field(default_factory=dict)
    jobs: set[WorkspaceId] = field(default_factory=set)
    calls: list[tuple[str, str]] = field(default_factory=list)

    async def enter(self, call: str, subject: str, *needed: Resource) -> None:
        """Begin a call: let other tasks run, then raise the injected failure, if any."""
        self.calls.append((call, subject))
        await asyncio.sleep(0)
        if self.failures[call]:
            raise self.failures[call].popleft()
        if call in self.dies_with:
            self.down.add(dying := self.dies_with.pop(call))
            raise Transient(ErrorReason.UNREACHABLE, f"The provider of the {dying} died.")
        for resource in needed:
            if resource in self.down:
                raise Transient(ErrorReason.UNREACHABLE, f"The provider of the {resource} does not answer.")

    async def pass_gate(self, call: str) -> None:
        if call in self.gates:
            await self.gates[call].wait()

    def is_committed(self, key: str) -> bool:
        return key in self.objects and meta_key(key) in self.objects

    def store_home(self, key: str, home: Home) -> StoredArchive:
        """Commit an archive: content first, meta last."""
        content = json.dumps({name: data.hex() for name, data in sorted(home.items())}).encode()
        digest = hashlib.sha256(content).hexdigest()
        self.objects[key] = FakeObject(content, self.now)
        self.objects[meta_key(key)] = FakeObject(f"sha256:{digest}\n".encode(), self.now)
        return StoredArchive(key, len(content), digest)

    def read_meta(self, key: str) -> StoredArchive:
        digest = self.objects[meta_key(key)].content.decode().splitlines()[0].removeprefix("sha256:")
        return StoredArchive(key, len(self.objects[key].content), digest)
