"""A scanner for the headers of WebSocket frames in passing data."""

from proxy.transport.routing import ActivityObserver

# Enough to include the names of the IDEs' messages, which follow their own headers.
MAX_START_BYTES = 1024
# The longest header has 14 bytes.
MAX_PEEK_BYTES = 14 + MAX_START_BYTES
SHORT_LENGTH, LONG_LENGTH = 126, 127


class FrameScanner:
    """Reports every frame once its header and the start of its payload have arrived; keeps no payloads.

    While the observer is saturated, frames are skipped.
    """

    __slots__ = ("_held", "_is_saturated", "_observer", "_skip")

    def __init__(self, observer: ActivityObserver) -> None:
        self._observer = observer
        self._is_saturated = False
        self._skip = 0
        self._held = b""

    def feed(self, data: bytes) -> None:
        self._is_saturated = self._observer.is_saturated()
        position = self._skip
        held = self._held
        if held:
            # Only the beginning is needed; the rest is not copied.
            peek = held + data[:MAX_PEEK_BYTES]
            end = self._read_frame(peek, 0)
            if end < 0:
                self._held = peek
                return
            self._held = b""
            position = end - len(held)
        if self._is_saturated:
            position = skip_short_frames(data, position)
        size = len(data)
        while position < size:
            end = self._read_frame(data, position)
            if end < 0:
                self._held = data[position:]
                self._skip = 0
                return
            position = end
        self._skip = position - size

    def _read_frame(self, data: bytes, position: int) -> int:
        """Report the frame at this position and return its end, or -1 if too little of it has arrived."""
        available = len(data) - position
        if available < 2:  # noqa: PLR2004 - every header has two bytes
            return -1
        second = data[position + 1]
        length = second & 0x7F
        masked = second & 0x80
        start = position + 2
        if length >= SHORT_LENGTH:
            wide = 2 if length == SHORT_LENGTH else 8
            if available < 2 + wide:
                return -1
            length = int.from_bytes(data[start : start + wide], "big")
            start += wide
        key_start = start
        if masked:
            start += 4
        if self._is_saturated:
            return start + length
        shown = min(MAX_START_BYTES, length)
        if start + shown > len(data):
            return -1
        payload = data[start : start + shown]
        if masked and shown:
            payload = unmask(payload, data[key_start:start])
        self._observer.message(data[position] & 0x0F, length, payload)
        return start + length


def skip_short_frames(data: bytes, position: int) -> int:
    """Return the position of the next long frame, or the end of the last short one, which may be beyond."""
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
