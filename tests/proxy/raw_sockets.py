"""Raw ends of a connection, for tests that send and receive byte for byte; every wait has a deadline."""

import re
import select
import socket
from types import TracebackType
from typing import Self

from testkit.waiting import DEADLINE_SECONDS

READ_BYTES = 256 * 1024
DATE = re.compile(rb"Date: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n")


class RawConnection:
    """One end of a TCP connection."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        end.settimeout(DEADLINE_SECONDS)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_in_pieces(self, data: bytes, size: int = 1) -> None:
        for start in range(0, len(data), size):
            self.socket.sendall(data[start : start + size])

    def receive_head(self) -> bytes:
        """Receive up to and including the next empty line."""
        return self.receive_to(b"\r\n\r\n")

    def receive_to(self, end: bytes) -> bytes:
        while end not in self._read:
            self._fill(f"waiting for {end!r}")
        head, _, self._read = self._read.partition(end)
        return head + end

    def receive_exactly(self, size: int) -> bytes:
        while len(self._read) < size:
            self._fill(f"waiting for {size} bytes")
        data, self._read = self._read[:size], self._read[size:]
        return data

    def receive_rest(self) -> bytes:
        """Receive until the other end closes; a reset fails the test."""
        while data := self.socket.recv(READ_BYTES):
            self._read += data
        data, self._read = self._read, b""
        return data

    def receive_until_lost(self) -> bytes:
        """Receive until the other end closes or resets."""
        try:
            while data := self.socket.recv(READ_BYTES):
                self._read += data
        except ConnectionError:
            pass
        data, self._read = self._read, b""
        return data

    def is_ended(self) -> bool:
        """Wait until the other end closes or resets; return whether nothing was received."""
        return self.receive_until_lost() == b""

    def has_input(self, within: float = 0) -> bool:
        return bool(self._read) or bool(select.select([self.socket], [], [], within)[0])

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        linger_zero = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero)
        self.socket.close()

    def close(self) -> None:
        self.socket.close()

    def _fill(self, why: str) -> None:
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise AssertionError(f"the connection ended, {why}; received {self._read[-2000:]!r}")
        self._read += data


def without_dates(responses: bytes) -> bytes:
    """Return the proxy's own responses without their dates; each must have one."""
    without, dates = DATE.subn(b"", responses)
    assert dates == responses.count(b"HTTP/1.1 ")
    return without


class RawUpstream:
    """A listening socket whose connections the test controls."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(DEADLINE_SECONDS)
        self.port: int = self._listening.getsockname()[1]
        self._accepted: list[RawConnection] = []

    def accept(self) -> RawConnection:
        connection = RawConnection(self._listening.accept()[0])
        self._accepted.append(connection)
        return connection

    def is_untouched(self) -> bool:
        """Return whether no connection waits to be accepted."""
        return not select.select([self._listening], [], [], 0)[0]

    def stop_listening(self) -> None:
        self._listening.close()

    def close(self) -> None:
        self._listening.close()
        for connection in self._accepted:
            connection.close()
