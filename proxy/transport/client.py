"""The client's side, as an exchange sees it."""

import asyncio
from typing import Protocol

from proxy.transport.core import Core
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Forward


class Client(Protocol):
    """Somebody who sends requests and takes answers, one after the other."""

    core: Core
    peer: str
    blocked: bool
    ended: bool
    received: bytes

    def write(self, data: bytes) -> None: ...

    def take(self) -> bytes:
        """What came and was not used yet."""

    def hold(self, data: bytes) -> None:
        """Keep for later, and read no more."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def wait(self, seconds: float) -> None:
        """Expire after that."""

    def charge(self, credential: str | None, holder: str | None) -> bool: ...

    def may_stay(self, head: RequestHead) -> bool:
        """Whether another request may follow on this connection."""

    def done(self, *, keep_alive: bool, linger: bool) -> None: ...

    def become_tunnel(self, route: Forward, upstream: asyncio.Transport) -> None: ...

    def close(self) -> None:
        """End once everything written is out."""

    def abort(self) -> None: ...
