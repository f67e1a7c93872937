"""What the transport asks: where a request goes, or what to answer. Who may pass is decided behind this."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from codehub.ports import Upstream
from proxy.transport.request_head import RequestHead


class ActivityObserver(Protocol):
    """Whoever wants to know of use. Must be quick and must not raise."""

    def request(self, head: RequestHead) -> None:
        """A request goes to the upstream."""

    def message(self, opcode: int, length: int, start: bytes) -> None:
        """The client sent a WebSocket frame; `start` is the beginning of its payload, at most 1 KB."""

    def is_sated(self) -> bool:
        """Whether another message would tell nothing new for now."""


# Not frozen: making a frozen one takes three times as long, and every request makes one.
@dataclass(slots=True)
class Forward:
    """Send the request there.

    Connections are shared among routes with the same pool key. `plain_messages` keeps WebSockets from
    being compressed, so that the observer can read them. Connections are limited per holder, a user, and
    ended by credential. A `trusted` upstream is a part of CodeHub: its answers pass with all that they say.
    """

    upstream: Upstream
    pool_key: str
    target: bytes
    drop_cookies: frozenset[bytes] = frozenset()
    drop_authorization: bool = False
    observer: ActivityObserver | None = None
    credential: str | None = None
    holder: str | None = None
    plain_messages: bool = False
    trusted: bool = False


@dataclass(frozen=True)
class Response:
    """Answer so, without any upstream; the length and `Connection` are added."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True)
class Stream:
    """Answer so, piece by piece, until the pieces end.

    The generator is closed whenever the client goes away, in whatever way. It waits while the client takes
    no more, and must yield something now and then: silence for `Timeouts.answer` ends the answer.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    pieces: AsyncGenerator[bytes, None]
    credential: str | None = None
    holder: str | None = None


@dataclass(frozen=True)
class Collect:
    """Read the request's body, which must be small, then decide: anything but Forward or Collect."""

    limit: int
    then: "Callable[[bytes], Awaitable[Routed]]"


Routed = Forward | Response | Stream | Collect


class Router(Protocol):
    """Decides. What it raises costs the client a 500."""

    def route(self, head: RequestHead, peer: str) -> Routed | Awaitable[Routed]:
        """Where it goes. Return at once if everything is known: an awaitable costs a task."""

    async def route_again(self, head: RequestHead, failed: Forward) -> Routed:
        """Where it goes now that the upstream could not be connected; asked once per request."""

    def unreachable(self, head: RequestHead, failed: Forward) -> Response:
        """What to say now that the second upstream could not be connected either."""
