"""Large bodies: whoever is slow slows the other side down, and memory stays small."""

import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from proxy.transport.routing import Response
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import Wire

TOTAL = 50_000_000
BLOCK = bytes(range(256)) * 256
# A handful of reads of 256 KiB, on both sides; the test's own are among them.
MAX_MEMORY = 4_000_000
STUCK_SECONDS = 0.3
ANSWERS = 5000
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: %d\r\n" % TOTAL


def send_length(wire: Wire) -> None:
    for _ in range(TOTAL // len(BLOCK)):
        wire.send(BLOCK)
    wire.send(BLOCK[: TOTAL % len(BLOCK)])


def send_chunks(wire: Wire) -> None:
    size = b"%x\r\n" % len(BLOCK)
    for _ in range(TOTAL // len(BLOCK)):
        wire.send(size + BLOCK + b"\r\n")
    wire.send(b"%x\r\n" % (TOTAL % len(BLOCK)) + BLOCK[: TOTAL % len(BLOCK)] + b"\r\n0\r\n\r\n")


BODIES = {"length": (LENGTH, send_length), "chunks": (CHUNKED, send_chunks)}


def count_payload(wire: Wire, framing: bytes) -> int:
    """How many bytes came until the end of the body, line ends and sizes of chunks included."""
    received = 0
    tail = b""
    while not (received >= TOTAL if framing is LENGTH else tail.endswith(b"\r\n0\r\n\r\n")):
        data = wire.socket.recv(65536)
        assert data
        received += len(data)
        tail = (tail + data)[-8:]
    return received


@contextmanager
def small_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
    finally:
        tracemalloc.stop()


def wait_until_stuck(harness: Harness, count: Callable[[], int]) -> int:
    """Return the count once it has not changed for a while."""
    last, changed_at = -1, time.monotonic()
    while time.monotonic() < changed_at + STUCK_SECONDS:
        before, last = last, harness.call(count)
        if before != last:
            changed_at = time.monotonic()
    return last


@pytest.mark.parametrize(("framing", "send"), BODIES.values(), ids=BODIES)
def test_a_large_request_passes_in_small_memory(
    harness: Harness, framing: bytes, send: Callable[[Wire], None]
) -> None:
    client = harness.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\n" + framing + b"\r\n")
    upstream = harness.upstream.accept()
    upstream.receive_head()
    with small_memory():
        sending = threading.Thread(target=send, args=(client,))
        sending.start()
        # Nobody reads at first: what the proxy takes in is bounded by the kernel's buffers.
        assert wait_until_stuck(harness, lambda: harness.server.counters.bytes_from_clients) < TOTAL
        assert sending.is_alive()
        assert count_payload(upstream, framing) >= TOTAL
        sending.join()
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert client.receive_head() == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(("framing", "send"), BODIES.values(), ids=BODIES)
def test_a_large_answer_passes_in_small_memory(
    harness: Harness, framing: bytes, send: Callable[[Wire], None]
) -> None:
    client = harness.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n")
    client.receive_head()
    with small_memory():
        sending = threading.Thread(target=send, args=(upstream,))
        sending.start()
        assert wait_until_stuck(harness, lambda: harness.server.counters.bytes_to_clients) < TOTAL
        assert sending.is_alive()
        assert count_payload(client, framing) >= TOTAL
        sending.join()
    # Both sides go on as if nothing had been.
    client.send(b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
    assert upstream.receive_head().startswith(b"GET /next HTTP/1.1\r\n")


def test_pipelined_requests_wait_while_the_client_does_not_read_the_answers(harness: Harness) -> None:
    client = harness.connect()
    request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
    body = BLOCK[:8192]
    client.send(request * ANSWERS)
    upstream = harness.upstream.accept()
    with small_memory():
        serving = threading.Thread(target=serve, args=(upstream, body, ANSWERS))
        serving.start()
        assert wait_until_stuck(harness, lambda: harness.server.counters.requests) < ANSWERS
        for _ in range(ANSWERS):
            assert client.receive_head().startswith(b"HTTP/1.1 200 OK\r\n")
            assert client.receive_exactly(len(body)) == body
        serving.join()


def test_a_request_waits_while_the_client_does_not_read_the_answer_before_it(harness: Harness) -> None:
    large = Response(200, body=bytes(TOTAL))
    harness.router.decide = lambda head: large if head.target == b"/1" else Response(204)
    client = harness.connect()
    request = b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"
    client.send(request)
    client.receive_head()
    client.send(b"GET /2 HTTP/1.1\r\nHost: h\r\n\r\n")
    counters = harness.server.counters
    harness.wait_until(lambda: counters.bytes_from_clients == 2 * len(request), "the second request is here")
    assert counters.requests == 1
    client.receive_exactly(TOTAL)
    assert client.receive_head().startswith(b"HTTP/1.1 204 ")


def serve(upstream: Wire, body: bytes, times: int) -> None:
    for _ in range(times):
        upstream.receive_head()
        upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def test_a_tunnel_slows_down_whoever_is_too_fast(harness: Harness) -> None:
    client = harness.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    client.receive_head()
    counters = harness.server.counters
    for source, target in ((client, upstream), (upstream, client)):
        before = counters.bytes_from_clients + counters.bytes_to_clients
        with small_memory():
            sending = threading.Thread(target=send_length, args=(source,))
            sending.start()
            moved = wait_until_stuck(harness, lambda: counters.bytes_from_clients + counters.bytes_to_clients)
            assert moved - before < TOTAL
            assert sending.is_alive()
            assert count_payload(target, LENGTH) == TOTAL
            sending.join()
