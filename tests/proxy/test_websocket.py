"""What the observer is told of frames, in whatever pieces they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.websocket import FrameScanner
from tests.proxy.frames import BINARY, CLOSE, PING, TEXT, frame

Seen = tuple[int, int, bytes]


def scan(pieces: list[bytes]) -> list[Seen]:
    seen: list[Seen] = []
    scanner = FrameScanner(lambda opcode, length, start: seen.append((opcode, length, start)))
    for piece in pieces:
        scanner.feed(piece)
    return seen


PAYLOADS = (0, 1, 63, 64, 65, 125, 126, 127, 65535, 65536, 200_000)


@pytest.mark.parametrize("size", PAYLOADS)
def test_a_frame_of_any_length_is_seen_with_its_start(size: int) -> None:
    payload = bytes(number % 251 for number in range(size))
    following = frame(PING, b"p")
    seen = scan([frame(BINARY, payload) + following])
    assert seen == [(BINARY, size, payload[:64]), (PING, 1, b"p")]


def test_frames_of_a_message_and_unmasked_ones_are_seen_too() -> None:
    frames = frame(TEXT, b"a", final=False) + frame(0, b"b") + b"\x82\x03xyz" + frame(CLOSE, b"")
    assert scan([frames]) == [(TEXT, 1, b"a"), (0, 1, b"b"), (BINARY, 3, b"xyz"), (CLOSE, 0, b"")]


def test_a_frame_is_told_of_as_soon_as_its_start_is_there() -> None:
    assert scan([frame(BINARY, b"x" * 100_000)[:78]]) == [(BINARY, 100_000, b"x" * 64)]


@given(
    payloads=st.lists(st.tuples(st.sampled_from([TEXT, BINARY, PING]), st.binary(max_size=300)), max_size=8),
    cuts=st.lists(st.integers(1, 200), min_size=1, max_size=60),
)
def test_frames_in_any_pieces_are_seen_the_same(payloads: list[tuple[int, bytes]], cuts: list[int]) -> None:
    stream = b"".join(frame(opcode, payload) for opcode, payload in payloads)
    pieces = []
    for size in cuts:
        pieces.append(stream[:size])
        stream = stream[size:]
    pieces.append(stream)
    assert scan(pieces) == [(opcode, len(payload), payload[:64]) for opcode, payload in payloads]


@given(st.lists(st.binary(max_size=100), max_size=20))
def test_no_bytes_upset_the_scanner(pieces: list[bytes]) -> None:
    scan(pieces)
