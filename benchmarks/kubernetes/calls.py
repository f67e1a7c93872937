"""The calls of each contestant to the API server, from its audit log."""

import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.instances.contestants import OURS
from benchmarks.instances.runner import Around
from benchmarks.scale.sweeps import Sweeper
from codehub.adapters.temporal.schedules import SCHEDULES
from codehub.domain.states import Operation
from testkit.deployment import Deployment

Calls = Counter[str]
Key = tuple[str, Operation, int]
# Every 20th sweep checks more; of two in a row, one does not.
SWEEPS = 2
# Installations list and watch all of these in the background: sweeps, watches for changes, the hub's watches.
IN_BACKGROUND = {"pods", "persistentvolumeclaims", "events"}


@dataclass(frozen=True)
class Call:
    """One request; without the name of an object it is about all objects of a kind."""

    verb: str
    resource: str
    name: str = ""

    @classmethod
    def from_audit(cls, event: dict[str, Any]) -> Self:
        # A request for the API's own description is about no resource.
        about = event.get("objectRef", {"resource": "discovery"})
        return cls(event["verb"], about["resource"], about.get("name", ""))

    @property
    def is_in_background(self) -> bool:
        return self.verb in {"list", "watch"} and self.resource in IN_BACKGROUND and not self.name

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


@dataclass(frozen=True)
class CallLog:
    """The audit log of the API server, for accounts in one namespace."""

    path: Path
    namespace: str

    def position(self) -> int:
        """Return where the next call will be logged."""
        return self.path.stat().st_size

    def since(self, position: int, account: str) -> list[Call]:
        """Return the calls of an account; a watch is logged twice, when it begins and when it ends."""
        user = f"system:serviceaccount:{self.namespace}:{account}"
        mine = (each for each in self._read(position) if each["user"]["username"] == user)
        return [Call.from_audit(each) for each in {each["auditID"]: each for each in mine}.values()]

    def _read(self, position: int) -> Iterator[dict[str, Any]]:
        with self.path.open("rb") as log:
            log.seek(position)
            yield from map(json.loads, log)


@dataclass
class CallCounter:
    """Counts the calls of operations and sweeps, by contestant and number of workspaces.

    Each operation has one entry per round; a sweep in the background adds calls to some.
    """

    log: CallLog
    accounts: Mapping[str, str]
    deployment: Deployment
    operations: defaultdict[Key, list[Calls]] = field(default_factory=lambda: defaultdict(list))
    sweeps: dict[int, Calls] = field(default_factory=dict)

    def around(self, workspaces: int) -> Around:
        """Return the context of an operation on this many workspaces at once."""
        return lambda name, operation: self._counting(name, operation, workspaces)

    @asynccontextmanager
    async def _counting(self, name: str, operation: Operation, workspaces: int) -> AsyncIterator[None]:
        position = self.log.position()
        yield
        found = self.log.since(position, self.accounts[name])
        own = Counter(str(each) for each in found if not each.is_in_background)
        self.operations[name, operation, workspaces].append(own)
        if (name, operation) == (OURS, Operation.STARTING) and workspaces not in self.sweeps:
            await self._count_sweep(workspaces)

    def typical(self) -> dict[Key, Calls]:
        """Return the calls of the median round of each operation."""
        middle = {key: (len(rounds) - 1) // 2 for key, rounds in self.operations.items()}
        return {
            key: sorted(rounds, key=Counter.total)[middle[key]] for key, rounds in self.operations.items()
        }

    async def _count_sweep(self, workspaces: int) -> None:
        """Count the calls of one sweep while this many workspaces run and no other sweep does."""
        sweeper, counts = Sweeper(self.deployment, worker=0), []
        async with paused_sweeps(self.deployment):
            for _ in range(SWEEPS):
                position = self.log.position()
                await sweeper.sweep()
                found = self.log.since(position, self.accounts[OURS])
                counts.append(Counter(str(each) for each in found if each.verb != "watch"))
        self.sweeps[workspaces] = min(counts, key=Counter.total)


@asynccontextmanager
async def paused_sweeps(deployment: Deployment) -> AsyncIterator[None]:
    """Keep the scheduled sweeps from running."""
    schedules = [deployment.client.get_schedule_handle(each) for each in SCHEDULES]
    for schedule in schedules:
        await schedule.pause()
    try:
        yield
    finally:
        for schedule in schedules:
            await schedule.unpause()
