"""The state machine that turns an upstream's bytes into bytes for the client."""

from collections.abc import Callable

from proxy.transport.bodies import CHUNKED, CLOSE, Body, CloseBody, new_body
from proxy.transport.request_head import RequestHead
from proxy.transport.response_head import ResponseHead, ResponseHeadReader, ResponseRefused
from proxy.transport.routing import Forward

MAX_INTERIM_RESPONSES = 32
SWITCHING, FINAL = 101, 200


class ResponseRelay:
    """Reads one response, including the interim ones before it.

    `started`: the final status line has come. `done`: the body is complete. `switching`: the response that
    accepts an upgrade. `surplus`: bytes that follow any of these.
    """

    __slots__ = (
        "_body", "_can_keep_alive", "_head", "_http11", "_interim", "_partial", "_reader", "_response",
        "_route", "done", "keep_alive", "started", "surplus", "switching", "upstream_keep_alive",
    )  # fmt: skip

    def __init__(
        self,
        head: RequestHead,
        route: Forward,
        reader: ResponseHeadReader,
        can_keep_alive: Callable[[], bool],
    ) -> None:
        self._head = head
        self._reader = reader
        self._http11 = head.block.version == b"HTTP/1.1"
        self._route = route
        self._can_keep_alive = can_keep_alive
        self._partial = b""
        self._interim = 0
        self._response: ResponseHead | None = None
        self._body: Body | None = None
        self.started = False
        self.done = False
        self.keep_alive = False
        self.surplus = b""
        self.switching: ResponseHead | None = None
        self.upstream_keep_alive = False

    def receive(self, data: bytes) -> bytes:
        """Take bytes from the upstream; return bytes for the client. Raise ResponseRefused or BodyRefused."""
        if self._body is not None:
            return self._read_body(self._body, data)
        if self._partial:
            data, self._partial = self._partial + data, b""
        passed = b""
        while data and not (self.started or self.switching):
            end = data.find(b"\r\n\r\n") + 4
            if end < 4:  # noqa: PLR2004 - not found
                self._keep_partial(data)
                break
            response = self._reader.read(data[:end], self._head.method, self._route)
            data = data[end:]
            passed += self._take_head(response)
        else:
            return passed + self._start_body(data)
        return passed

    def has_received(self) -> bool:
        """Return whether the upstream has sent anything yet."""
        return bool(self.started or self._partial or self._interim)

    def is_event_stream(self) -> bool:
        """Return whether this is a stream of events, which lasts as long as the client listens."""
        return self._response is not None and self._response.is_event_stream()

    def ends_with_connection(self) -> bool:
        return isinstance(self._body, CloseBody)

    def _keep_partial(self, data: bytes) -> None:
        if len(data) > self._reader.max_bytes:
            raise ResponseRefused("head too large")
        self._partial = data

    def _take_head(self, response: ResponseHead) -> bytes:
        if response.status >= FINAL:
            return self._start(response)
        if response.status == SWITCHING:
            self.switching = response
            return b""
        self._interim += 1
        if self._interim > MAX_INTERIM_RESPONSES:
            raise ResponseRefused("too many interim responses")
        # HTTP/1.0 has no interim responses.
        return response.render_interim() if self._http11 else b""

    def _start(self, response: ResponseHead) -> bytes:
        self.started = True
        self._response = response
        self.upstream_keep_alive = response.keep_alive
        framing = response.framing
        self._body = new_body(framing, response.length, decode=not self._http11)
        delimited = framing is not CLOSE and (self._http11 or framing is not CHUNKED)
        self.keep_alive = delimited and self._can_keep_alive()
        return response.render(http11=self._http11, keep_alive=self.keep_alive)

    def _start_body(self, data: bytes) -> bytes:
        if self._body is not None:
            return self._read_body(self._body, data) if data else b""
        self.surplus = data
        self.done = self.started
        return b""

    def _read_body(self, body: Body, data: bytes) -> bytes:
        passed, self.surplus = body.split(data)
        self.done = body.done
        return passed
