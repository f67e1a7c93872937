"""WebSocket frames as a browser sends them."""

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY = b"\x11\x22\x33\x44"


def frame(opcode: int, payload: bytes, key: bytes = KEY, *, final: bool = True) -> bytes:
    """Return a masked frame."""
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 65536:
        length = bytes([0x80 | 126]) + size.to_bytes(2, "big")
    else:
        length = bytes([0x80 | 127]) + size.to_bytes(8, "big")
    mask = (key * (size // 4 + 1))[:size]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")).to_bytes(size, "big")
    return bytes([(0x80 if final else 0) | opcode]) + length + key + masked
