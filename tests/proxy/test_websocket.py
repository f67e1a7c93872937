"""The frames that an observer sees, however the data is split."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.transport.websocket import FrameScanner
from tests.proxy.harness import RecordingObserver
from tests.proxy.websocket_frames import BINARY, CLOSE, PING, TEXT, frame

Seen = tuple[int, int, bytes]


class Observer(RecordingObserver):
    """An observer that is saturated after a number of frames."""

    def __init__(self, saturated_after: float = math.inf) -> None:
        super().__init__()
        self.saturated_after = saturated_after

    def is_saturated(self) -> bool:
        return len(self.messages) >= self.saturated_after


def scan(pieces: list[bytes], saturated_after: float = math.inf) -> list[Seen]:
    observer = Observer(saturated_after)
    scanner = FrameScanner(observer)
    for piece in pieces:
        scanner.feed(piece)
    return observer.messages


PAYLOADS = (0, 1, 1023, 1024, 1025, 125, 126, 127, 65535, 65536, 200_000)


@pytest.mark.parametrize("size", PAYLOADS)
def test_a_frame_of_any_length_is_reported_with_its_start(size: int) -> None:
    payload = bytes(number % 251 for number in range(size))
    following = frame(PING, b"p")
    seen = scan([frame(BINARY, payload) + following])
    assert seen == [(BINARY, size, payload[:1024]), (PING, 1, b"p")]


def test_fragments_and_unmasked_frames_are_reported_too() -> None:
    frames = frame(TEXT, b"a", final=False) + frame(0, b"b") + b"\x82\x03xyz" + frame(CLOSE, b"")
    assert scan([frames]) == [(TEXT, 1, b"a"), (0, 1, b"b"), (BINARY, 3, b"xyz"), (CLOSE, 0, b"")]


def test_a_frame_is_reported_as_soon_as_its_start_has_arrived() -> None:
    assert scan([frame(BINARY, b"x" * 100_000)[:1038]]) == [(BINARY, 100_000, b"x" * 1024)]


def test_a_saturated_observer_gets_no_more_frames() -> None:
    one = frame(BINARY, b"x" * 2000)
    assert scan([one, one[:3], one[3:9], one[9:], one], saturated_after=1) == [(BINARY, 2000, b"x" * 1024)]


@given(st.lists(st.integers(0, 70_000), max_size=20), st.lists(st.integers(1, 300), min_size=1, max_size=90))
def test_frames_are_skipped_however_they_are_split(lengths: list[int], cuts: list[int]) -> None:
    """Skip all frames but the last one, which must be reported."""
    observer = Observer(saturated_after=0)
    scanner = FrameScanner(observer)
    stream = b"".join(frame(BINARY, bytes(length)) for length in lengths)
    for size in cuts:
        scanner.feed(stream[:size])
        stream = stream[size:]
    scanner.feed(stream)
    observer.saturated_after = math.inf
    scanner.feed(frame(TEXT, b"last"))
    assert observer.messages == [(TEXT, 4, b"last")]


def test_after_saturation_the_next_frame_is_reported_from_its_start() -> None:
    observer = Observer(saturated_after=1)
    scanner = FrameScanner(observer)
    scanner.feed(frame(TEXT, b"first") + frame(TEXT, b"second"))
    scanner.feed(frame(TEXT, b"third" * 300)[:50])
    observer.saturated_after = math.inf
    scanner.feed(frame(TEXT, b"third" * 300)[50:] + frame(TEXT, b"fourth"))
    assert [start for _, _, start in observer.messages] == [b"first", b"second", b"fourth"]


@given(
    payloads=st.lists(st.tuples(st.sampled_from([TEXT, BINARY, PING]), st.binary(max_size=300)), max_size=8),
    cuts=st.lists(st.integers(1, 200), min_size=1, max_size=60),
)
def test_frames_are_reported_the_same_however_they_are_split(
    payloads: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(frame(opcode, payload) for opcode, payload in payloads)
    pieces = []
    for size in cuts:
        pieces.append(stream[:size])
        stream = stream[size:]
    pieces.append(stream)
    assert scan(pieces) == [(opcode, len(payload), payload[:1024]) for opcode, payload in payloads]


@given(st.lists(st.binary(max_size=100), max_size=20))
def test_any_bytes_are_accepted(pieces: list[bytes]) -> None:
    scan(pieces)
