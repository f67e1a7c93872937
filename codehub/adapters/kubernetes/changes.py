"""Watches Pods and claims, so that an exited or removed one is noticed before the next sweep."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Generic, NoReturn, cast

import httpx2
from lightkube.resources.core_v1 import PersistentVolumeClaim, Pod

from codehub.adapters.kubernetes.client import ERRORS, Kind, Kubernetes, error_text, status_of, uid_of
from codehub.adapters.kubernetes.options import Component, KubernetesOptions
from codehub.adapters.kubernetes.pods import PodInfo
from codehub.backoff import delay_after
from codehub.domain.conditions import WorkspaceId

# The server ends a watch after this long. One that is silent for longer is dead; see transport.py.
WATCH_SECONDS = 60
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 15.0
_log = logging.getLogger(__name__)


class KubernetesChanges:
    """Two watches per process. The sweep finds what happens while they are down."""

    def __init__(
        self, kubernetes: Kubernetes, options: KubernetesOptions, watch_seconds: int = WATCH_SECONDS
    ) -> None:
        self._kubernetes = kubernetes
        self._options = options
        self._watch_seconds = watch_seconds

    async def follow(self) -> AsyncIterator[WorkspaceId]:
        """Yield changed workspaces. Raise what ends a watch, which can only be a fault of CodeHub."""
        changed: asyncio.Queue[WorkspaceId | None] = asyncio.Queue()
        common = (self._kubernetes, self._options, self._watch_seconds, changed.put_nowait)
        watches = (
            Watch(*common, Pod, Component.WORKSPACE, lambda pod: PodInfo.of(pod).has_exited),
            Watch(*common, PersistentVolumeClaim, Component.HOME, lambda _: False),
        )
        running = [asyncio.create_task(each.run()) for each in watches]
        for task in running:
            task.add_done_callback(lambda _: changed.put_nowait(None))
        try:
            while workspace_id := await changed.get():
                yield workspace_id
            for task in running:
                if task.done():
                    task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)


@dataclass
class Watch(Generic[Kind]):
    """Watches the objects of one kind, and tells which workspaces have lost theirs.

    `known` has the id of each object that has not ended. After an outage, or when the server has forgotten
    the version that the watch had seen, a list tells what has changed meanwhile.
    """

    kubernetes: Kubernetes
    options: KubernetesOptions
    watch_seconds: int
    tell: Callable[[WorkspaceId], None]
    kind: type[Kind]
    component: Component
    has_ended: Callable[[Kind], bool]
    known: dict[WorkspaceId, str] = field(default_factory=dict)

    async def run(self) -> NoReturn:
        """Watch forever, whatever fails."""
        clock = asyncio.get_running_loop().time
        failures = 0
        while True:
            began = clock()
            try:
                await self._watch(await self._list())
            except ERRORS as error:
                # A watch that lived for long was not a failure in a row.
                failures = 0 if clock() - began > LONGEST_DELAY_SECONDS else failures
                if failures == 0 and not _is_too_old(error):
                    _log.warning(
                        "No events from Kubernetes (%s); changes may wait for a sweep", error_text(error)
                    )
            failures += 1
            await asyncio.sleep(delay_after(failures, FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS))

    async def _list(self) -> str:
        """Tell what has changed since the last event, and return the version of the list."""
        listed = self.kubernetes.client.list(self.kind, labels=self.options.selector(self.component))
        found = [each async for each in listed]
        alive = {workspace_id: uid for each in found for workspace_id, uid in self._alive(each)}
        for workspace_id, uid in self.known.items():
            if alive.get(workspace_id) != uid:
                self.tell(workspace_id)
        self.known = alive
        return listed.resourceVersion

    async def _watch(self, version: str) -> None:
        """Tell of each change until an error."""
        events = self.kubernetes.client.watch(
            self.kind,
            labels=self.options.selector(self.component),
            resource_version=version,
            server_timeout=self.watch_seconds,
        )
        async with contextlib.aclosing(cast("AsyncGenerator[tuple[str, Kind]]", events)) as changes:
            async for change, found in changes:
                self._notice(found, removed=change == "DELETED")

    def _notice(self, found: Kind, *, removed: bool) -> None:
        workspace_id = self._workspace_of(found)
        if workspace_id is None:
            return
        if not removed and not self.has_ended(found):
            self.known[workspace_id] = uid_of(found)
        elif self.known.pop(workspace_id, None) is not None or removed:
            self.tell(workspace_id)

    def _alive(self, found: Kind) -> list[tuple[WorkspaceId, str]]:
        workspace_id = self._workspace_of(found)
        return [(workspace_id, uid_of(found))] if workspace_id and not self.has_ended(found) else []

    def _workspace_of(self, found: Kind) -> WorkspaceId | None:
        return self.options.workspace_of(getattr(found, "metadata", None), self.component)


def _is_too_old(error: Exception) -> bool:
    return isinstance(error, httpx2.HTTPStatusError) and status_of(error) == HTTPStatus.GONE
