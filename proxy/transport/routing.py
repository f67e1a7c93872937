"""The interface between the transport and a router, which decides where each request goes."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from proxy.transport.request_head import RequestHead


class Upstream(Protocol):
    """A server to forward to: its address, or the path of a UNIX socket as `host`, and headers to add.

    Every connection starts with the preamble.
    """

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...

    @property
    def preamble(self) -> bytes: ...


class ActivityObserver(Protocol):
    """Watches the traffic of one route. Must be quick and must not raise."""

    def request(self, head: RequestHead) -> None:
        """Note a request that goes to the upstream."""

    def message(self, opcode: int, length: int, start: bytes) -> None:
        """Note a WebSocket frame from the client; `start` is up to 1 KB of its payload."""

    def is_saturated(self) -> bool:
        """Return whether more messages would add nothing for now."""


# Not frozen: a frozen one takes three times as long to create, and every request creates one.
@dataclass(slots=True)
class Forward:
    """Forward the request to an upstream.

    Routes with the same pool key share connections. `plain_messages` turns WebSocket compression off, so
    that the observer can read the messages. Connections are limited per user and ended by credential.
    Cookies whose lowercase names start with one of `drop_cookies` pass in neither direction.
    A `trusted` upstream is part of CodeHub: its responses may set any header.
    """

    upstream: Upstream
    pool_key: str
    target: bytes
    drop_cookies: tuple[bytes, ...] = ()
    drop_authorization: bool = False
    observer: ActivityObserver | None = None
    credential: str | None = None
    user: str | None = None
    plain_messages: bool = False
    trusted: bool = False


Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Response:
    """Respond without an upstream; the transport adds the length and `Connection`."""

    status: int
    headers: Headers = ()
    body: bytes = b""

    def with_defaults(self, defaults: Headers) -> "Response":
        return replace(self, headers=with_defaults(self.headers, defaults))


@dataclass(frozen=True)
class Stream:
    """Respond with chunks as they come, until the generator ends.

    The generator is closed when the client leaves, and waits while the client is slow. It must yield
    something now and then: silence for `Timeouts.response` ends the response.
    """

    status: int
    headers: Headers
    chunks: AsyncGenerator[bytes, None]
    credential: str | None = None
    user: str | None = None

    def with_defaults(self, defaults: Headers) -> "Stream":
        return replace(self, headers=with_defaults(self.headers, defaults))


@dataclass(frozen=True)
class Collect:
    """Read a small request body, then decide: on anything but Forward or Collect."""

    limit: int
    then: "Callable[[bytes], Awaitable[Routed]]"


def with_defaults(headers: Headers, defaults: Headers) -> Headers:
    """Return the headers, plus the defaults that they lack."""
    names = {name.lower() for name, _ in headers}
    return (*headers, *((name, value) for name, value in defaults if name.lower() not in names))


Routed = Forward | Response | Stream | Collect


class Router(Protocol):
    """Decides where requests go. An exception becomes a 500 for the client."""

    def route(self, head: RequestHead, peer: str) -> Routed | Awaitable[Routed]:
        """Route a request. Return the result itself if it is known: an awaitable costs a task."""

    async def route_again(self, head: RequestHead, failed: Forward) -> Routed:
        """Route a request whose upstream could not be reached; called once per request."""

    def unreachable(self, head: RequestHead, failed: Forward) -> Response:
        """Return the response after the second upstream could not be reached either."""

    def explain_too_large(self, start: bytes) -> Response | None:
        """Return a response for a head that is too large, given its start; None means the default."""
