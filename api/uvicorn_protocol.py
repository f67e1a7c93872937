"""uvicorn's HTTP protocol with a limit that its fast parser lacks: on the size of a request's head."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 65_536


class BoundedHeadersProtocol(HttpToolsProtocol):
    """Counts what arrives before a head is complete; who sends more than that is answered and cut off."""

    _head_bytes = 0
    _in_head = True

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self._fits(data):
                self.send_400_response("The request's head is too large.")
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        super().on_headers_complete()

    def _fits(self, data: bytes) -> bool:
        """A head may end in the middle of a large piece, whose rest is a body."""
        end = data.find(b"\r\n\r\n")
        return end != -1 and self._head_bytes - len(data) + end <= MAX_HEAD_BYTES
