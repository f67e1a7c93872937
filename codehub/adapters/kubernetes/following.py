"""Follows one object with a watch, for a step that waits for it to change."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus
from typing import Generic, cast

import httpx2

from codehub.adapters.kubernetes.client import ERRORS, Kind, Kubernetes, metadata_of, status_of, uid_of

# The server ends a watch after this long, and the client starts the next one. A step that follows a dead
# connection waits for its end, and a person for the step.
WATCH_SECONDS = 20
# While no watch works, the object is read this often.
READ_SECONDS = 0.5


class Followed(Generic[Kind]):
    """The latest state of one object; None once it does not exist or another one has its name."""

    def __init__(self, kubernetes: Kubernetes, kind: type[Kind], found: Kind) -> None:
        self.latest: Kind | None = found
        self._kubernetes = kubernetes
        self._kind = kind
        self._name = metadata_of(found).name or ""
        self._uid = uid_of(found)
        self._changed = asyncio.Event()
        self._error: BaseException | None = None

    async def wait(self, seconds: float) -> None:
        """Return when the object has changed since the last call, or after this time.

        Raise the error that ended the watch.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()
        if self._error is not None:
            raise self._error

    async def run(self) -> None:
        """Keep the state up to date until the object is gone."""
        while self.latest is not None:
            try:
                await self._watch(metadata_of(self.latest).resourceVersion)
            except ERRORS as error:
                if _is_refused(error):
                    raise
                # The connection was cut, or the server no longer has the changes since that version. If the
                # server does not respond at all, reading the object raises that.
                await asyncio.sleep(READ_SECONDS)
                self._update(await self._kubernetes.find(self._kind, self._name))

    def end(self, running: "asyncio.Task[None]") -> None:
        """Wake the waiting step when the watch has ended."""
        self._error = None if running.cancelled() else running.exception()
        self._changed.set()

    async def _watch(self, version: str | None) -> None:
        events = self._kubernetes.client.watch(
            self._kind,
            fields={"metadata.name": self._name},
            resource_version=version,
            server_timeout=WATCH_SECONDS,
        )
        async with contextlib.aclosing(cast("AsyncGenerator[tuple[str, Kind]]", events)) as changes:
            async for change, found in changes:
                self._update(None if change == "DELETED" else found)
                if self.latest is None:
                    return

    def _update(self, found: Kind | None) -> None:
        self.latest = found if found is not None and uid_of(found) == self._uid else None
        self._changed.set()


@contextlib.asynccontextmanager
async def follow(kubernetes: Kubernetes, kind: type[Kind], found: Kind) -> AsyncIterator[Followed[Kind]]:
    """Follow the object until the end of the block."""
    followed = Followed(kubernetes, kind, found)
    running = asyncio.create_task(followed.run())
    running.add_done_callback(followed.end)
    try:
        yield followed
    finally:
        running.cancel()
        await asyncio.wait([running])


async def wait_until_gone(kubernetes: Kubernetes, kind: type[Kind], found: Kind, seconds: float) -> bool:
    """Return whether this object ceases to exist within this time."""
    followed = Followed(kubernetes, kind, found)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await followed.run()
    return followed.latest is None


def _is_refused(error: Exception) -> bool:
    """Return whether the server does not let CodeHub watch, so that another watch cannot help."""
    if not isinstance(error, httpx2.HTTPStatusError):
        return False
    return status_of(error) in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
