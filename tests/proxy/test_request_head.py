"""The cache of request heads: it keeps what repeats, and little memory."""

import tracemalloc

import pytest

from proxy.transport.request_head import MAX_CACHED_BYTES, RequestHeadReader

FLOOD = 20_000
MAX_MEMORY = 4_000_000


def head(field: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\nHost: h\r\nCookie: " + field + b"\r\n\r\n"


def flood(reader: RequestHeadReader, times: int = 1) -> None:
    for number in range(FLOOD):
        for _ in range(times):
            reader.read(head(b"%d=" % number + b"x" * 1000))


def test_fields_that_repeat_are_parsed_once() -> None:
    reader = RequestHeadReader()
    reader.read(head(b"a"))
    remembered = reader.read(head(b"a")).block
    assert reader.read(b"POST /other" + head(b"a")[5:]).block is remembered
    assert reader.read(head(b"b")).block is not remembered


def test_the_same_fields_of_another_version_are_parsed_again() -> None:
    reader = RequestHeadReader()
    for _ in range(3):
        assert reader.read(head(b"a")).keep_alive
        assert not reader.read(head(b"a").replace(b"HTTP/1.1", b"HTTP/1.0")).keep_alive


def test_a_flood_of_heads_does_not_displace_those_that_repeat() -> None:
    reader = RequestHeadReader()
    reader.read(head(b"a"))
    remembered = reader.read(head(b"a")).block
    flood(reader)
    assert reader.read(head(b"a")).block is remembered


@pytest.mark.parametrize("times", [1, 2])
def test_a_flood_of_heads_takes_little_memory(times: int) -> None:
    reader = RequestHeadReader()
    tracemalloc.start()
    try:
        flood(reader, times)
        assert tracemalloc.get_traced_memory()[0] < MAX_MEMORY
    finally:
        tracemalloc.stop()


def test_large_heads_are_not_cached() -> None:
    reader = RequestHeadReader()
    large = head(b"x" * MAX_CACHED_BYTES)
    blocks = [reader.read(large).block for _ in range(3)]
    assert len(set(blocks)) == len(blocks)
