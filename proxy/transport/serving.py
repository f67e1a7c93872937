"""A request under way, as those see it who serve it, and they as it sees them."""

from collections.abc import Awaitable
from typing import Protocol

from proxy.transport.bodies import Body
from proxy.transport.client import Client
from proxy.transport.core import Core
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response, Routed


class Request(Protocol):
    """One request; it ends with `finish` or with the end of the client."""

    client: Client
    core: Core
    head: RequestHead
    body: Body | None
    # Once a status line went out there must not be another one.
    answered: bool

    def is_owed(self) -> bool:
        """Whether a part of the body is still to come."""

    def may_stay(self) -> bool:
        """Whether the connection may serve another request after this one."""

    def cut(self, data: bytes) -> bytes:
        """The part of the data that belongs to the body, the rest waits; if it is malformed, fail."""

    def discard_body(self) -> None:
        """Throw away what is here of it."""

    def wait_for(self, routing: Awaitable[Routed]) -> None:
        """Follow what comes of it."""

    def follow(self, routed: Routed) -> None:
        """Do so instead; nothing has been answered yet."""

    def fail(self, status: int, reason: str) -> None:
        """Say so and close, or only close if an answer has begun."""

    def fail_with(self, answer: Response) -> None:
        """The same in other words."""

    def broke(self) -> None:
        """After an error of ours: this connection pays for it, no other one does."""

    def finish(self, *, keep_alive: bool, linger: bool) -> None:
        """The answer is out."""


class Service(Protocol):
    """Whoever serves a request: an upstream, a stream of ours, one who reads the body first."""

    def request_received(self, data: bytes) -> None:
        """More from the client: of this body if it has not ended, else of what comes later."""

    def request_ended(self) -> None:
        """The client sends no more."""

    def client_blocked(self) -> None: ...

    def client_ready(self) -> None: ...

    def expire(self) -> None:
        """The client's deadline has passed."""

    def drain(self) -> None:
        """End soon, or at once if there is no end in sight."""

    def stop(self) -> None:
        """Let go of everything: the request has failed or its client is gone. May come more than once."""
