"""An upstream's answer on its way to the client: bytes in, bytes out."""

from collections.abc import Callable

from proxy.transport.bodies import Body, CloseBody, new_body
from proxy.transport.header_fields import CHUNKED, CLOSE
from proxy.transport.request_head import RequestHead
from proxy.transport.response_head import ResponseHead, ResponseHeadReader, ResponseRefused
from proxy.transport.routing import Forward

MAX_INTERIM_ANSWERS = 32
SWITCHING, FINAL = 101, 200


class ResponseRelay:
    """Reads one answer, interim ones before it included.

    `began` once a final status line is to be sent, `done` after the last byte of the body, `switching` is the
    answer that accepts an upgrade; `surplus` is what came after any of these.
    """

    __slots__ = (
        "_answer", "_answers", "_body", "_head", "_interim", "_may_stay", "_modern", "_partial", "_route",
        "began", "done", "keep_alive", "surplus", "switching", "upstream_stays",
    )  # fmt: skip

    def __init__(
        self, head: RequestHead, route: Forward, answers: ResponseHeadReader, may_stay: Callable[[], bool]
    ) -> None:
        self._head = head
        self._answers = answers
        self._modern = head.block.version == b"HTTP/1.1"
        self._route = route
        self._may_stay = may_stay
        self._partial = b""
        self._interim = 0
        self._answer: ResponseHead | None = None
        self._body: Body | None = None
        self.began = False
        self.done = False
        self.keep_alive = False
        self.surplus = b""
        self.switching: ResponseHead | None = None
        self.upstream_stays = False

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the upstream, return bytes for the client. Raise AnswerRefused or BodyRefused."""
        if self._body is not None:
            return self._cut(self._body, data)
        if self._partial:
            data, self._partial = self._partial + data, b""
        passed = b""
        while data and not (self.began or self.switching):
            end = data.find(b"\r\n\r\n") + 4
            if end < 4:  # noqa: PLR2004 - not found
                self._keep_partial(data)
                break
            answer = self._answers.read(data[:end], self._head.method, self._route)
            data = data[end:]
            passed += self._take(answer)
        else:
            return passed + self._begin_body(data)
        return passed

    def heard(self) -> bool:
        """Whether the upstream has said anything yet."""
        return bool(self.began or self._partial or self._interim)

    def is_event_stream(self) -> bool:
        """Whether an answer has begun that goes on for as long as somebody listens."""
        return self._answer is not None and self._answer.is_event_stream()

    def ends_with_connection(self) -> bool:
        return isinstance(self._body, CloseBody)

    def _keep_partial(self, data: bytes) -> None:
        if len(data) > self._answers.max_bytes:
            raise ResponseRefused("head too large")
        self._partial = data

    def _take(self, answer: ResponseHead) -> bytes:
        if answer.status >= FINAL:
            return self._begin(answer)
        if answer.status == SWITCHING:
            self.switching = answer
            return b""
        self._interim += 1
        if self._interim > MAX_INTERIM_ANSWERS:
            raise ResponseRefused("too many interim answers")
        # HTTP/1.0 knows none.
        return answer.render_interim() if self._modern else b""

    def _begin(self, answer: ResponseHead) -> bytes:
        self.began = True
        self._answer = answer
        self.upstream_stays = answer.keep_alive
        framing = answer.framing
        self._body = new_body(framing, answer.length, decode=not self._modern)
        delimited = framing is not CLOSE and (self._modern or framing is not CHUNKED)
        self.keep_alive = delimited and self._may_stay()
        return answer.render(modern=self._modern, keep_alive=self.keep_alive)

    def _begin_body(self, data: bytes) -> bytes:
        if self._body is not None:
            return self._cut(self._body, data) if data else b""
        self.surplus = data
        self.done = self.began
        return b""

    def _cut(self, body: Body, data: bytes) -> bytes:
        passed, self.surplus = body.cut(data)
        self.done = body.done
        return passed
