"""Frame headers of a WebSocket, read beside the bytes that pass."""

from proxy.transport.routing import ActivityObserver

# Enough to find the names that IDEs give to their messages, behind their own headers.
MAX_START_BYTES = 1024
# The longest header is 14 bytes long.
MAX_GLANCE_BYTES = 14 + MAX_START_BYTES
SHORT_LENGTH, LONG_LENGTH = 126, 127


class FrameScanner:
    """Tells of every frame once its header and the start of its payload are here; payloads are not kept.

    While the observer wants to know no more, frames are only counted off.
    """

    __slots__ = ("_held", "_is_sated", "_observer", "_skip")

    def __init__(self, observer: ActivityObserver) -> None:
        self._observer = observer
        self._is_sated = False
        self._skip = 0
        self._held = b""

    def feed(self, data: bytes) -> None:
        self._is_sated = self._observer.is_sated()
        position = self._skip
        held = self._held
        if held:
            # Only the beginning is needed to go on; the rest is not copied.
            glance = held + data[:MAX_GLANCE_BYTES]
            end = self._glance(glance, 0)
            if end < 0:
                self._held = glance
                return
            self._held = b""
            position = end - len(held)
        if self._is_sated:
            position = count_off(data, position)
        size = len(data)
        while position < size:
            end = self._glance(data, position)
            if end < 0:
                self._held = data[position:]
                self._skip = 0
                return
            position = end
        self._skip = position - size

    def _glance(self, data: bytes, position: int) -> int:
        """Observe the frame here and return where it ends; -1 if too little of it is here."""
        here = len(data) - position
        if here < 2:  # noqa: PLR2004 - every header has two bytes
            return -1
        second = data[position + 1]
        length = second & 0x7F
        masked = second & 0x80
        start = position + 2
        if length >= SHORT_LENGTH:
            wide = 2 if length == SHORT_LENGTH else 8
            if here < 2 + wide:
                return -1
            length = int.from_bytes(data[start : start + wide], "big")
            start += wide
        key_start = start
        if masked:
            start += 4
        if self._is_sated:
            return start + length
        shown = min(MAX_START_BYTES, length)
        if start + shown > len(data):
            return -1
        payload = data[start : start + shown]
        if masked and shown:
            payload = unmask(payload, data[key_start:start])
        self._observer.message(data[position] & 0x0F, length, payload)
        return start + length


def count_off(data: bytes, position: int) -> int:
    """Go past the short frames here, to a long one or to the end; the last one may end beyond the data."""
    last = len(data) - 1
    while position < last:
        second = data[position + 1]
        length = second & 0x7F
        if length >= SHORT_LENGTH:
            break
        position += length + (6 if second & 0x80 else 2)
    return position


def unmask(payload: bytes, key: bytes) -> bytes:
    size = len(payload)
    mask = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")).to_bytes(size, "big")
