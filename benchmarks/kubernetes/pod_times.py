"""When the API tells about each Pod, seen by an observer that takes no part.

Kubelets look for changes once a second and probe once a second, so two starts of the same Pod differ by up
to two seconds. What the contestants add to that can be measured only beside it: the time until the Pod exists
or terminates, and the time after it is ready or gone.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from lightkube.resources.core_v1 import Pod

from benchmarks.instances.contestants import Contestant
from codehub.adapters.kubernetes.client import Kubernetes
from codehub.adapters.kubernetes.pods import PodInfo
from codehub.domain.states import Operation

PodName = Callable[[str, int], str]
EVENT_SECONDS = 30
# Until the cluster is asked, until it is done, and until the contestant says so.
BEFORE, CLUSTER, AFTER = "before", "cluster", "after"
SHARES = (BEFORE, CLUSTER, AFTER)


class Event(StrEnum):
    """What the API tells about a Pod."""

    CREATED = "created"
    READY = "ready"
    TERMINATING = "terminating"
    GONE = "gone"


# What a contestant asks of the cluster, and what it waits for.
ENDS = {
    Operation.STARTING: (Event.CREATED, Event.READY),
    Operation.STOPPING: (Event.TERMINATING, Event.GONE),
}


@dataclass
class PodTimes:
    """The time of each event, by the name of the Pod and the event; the first one counts."""

    kubernetes: Kubernetes
    times: dict[tuple[str, Event], float] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def forget(self, pod: str) -> None:
        for event in Event:
            self.times.pop((pod, event), None)

    async def wait_for(self, pod: str, event: Event) -> float:
        async with asyncio.timeout(EVENT_SECONDS), self.changed:
            await self.changed.wait_for(lambda: (pod, event) in self.times)
            return self.times[pod, event]

    @asynccontextmanager
    async def observing(self) -> AsyncIterator[Self]:
        # A group, so that the benchmark ends if the watch does.
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch())
            yield self
            watch.cancel()

    async def _watch(self) -> None:
        async for change, pod in self.kubernetes.client.watch(Pod):
            now, info = time.perf_counter(), PodInfo.of(pod)
            async with self.changed:
                for event in _events(info, gone=change == "DELETED"):
                    self.times.setdefault((info.name, event), now)
                self.changed.notify_all()


def _events(info: PodInfo, *, gone: bool) -> list[Event]:
    found = {
        Event.CREATED: True,
        Event.READY: info.has_condition("Ready"),
        Event.TERMINATING: info.is_terminating,
        Event.GONE: gone,
    }
    return [event for event, happened in found.items() if happened]


@dataclass
class Observed:
    """A contestant whose Pods are observed; `pod_of` returns the name of a Pod by image and number."""

    contestant: Contestant
    pods: PodTimes
    pod_of: PodName
    last: defaultdict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))

    async def prepare(self, reference: str, number: int) -> None:
        await self.contestant.prepare(reference, number)

    async def start(self, reference: str, number: int) -> None:
        self.pods.forget(self.pod_of(reference, number))
        began = time.perf_counter()
        await self.contestant.start(reference, number)
        self.last[reference, number] = [began, time.perf_counter()]

    async def stop(self, reference: str, number: int) -> None:
        began = time.perf_counter()
        await self.contestant.stop(reference, number)
        self.last[reference, number] = [began, time.perf_counter()]

    async def step_seconds(self, reference: str, number: int, operation: Operation) -> Mapping[str, float]:
        """Return the shares of the last operation besides the contestant's own steps."""
        began, ended = self.last[reference, number]
        asked, done = [
            await self.pods.wait_for(self.pod_of(reference, number), event) for event in ENDS[operation]
        ]
        shares = {BEFORE: asked - began, CLUSTER: done - asked, AFTER: ended - done}
        return {**shares, **await self.contestant.step_seconds(reference, number, operation)}
