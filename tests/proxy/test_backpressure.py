"""Large bodies: a slow side slows the other one down, and memory use stays small."""

import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from proxy.transport.routing import Response
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import RawConnection

TOTAL = 50_000_000
BLOCK = bytes(range(256)) * 256
# A few reads of 256 KiB on both sides, including those of the test.
MAX_MEMORY = 4_000_000
STUCK_SECONDS = 0.3
RESPONSES = 5000
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: %d\r\n" % TOTAL


def send_length(connection: RawConnection) -> None:
    for _ in range(TOTAL // len(BLOCK)):
        connection.send(BLOCK)
    connection.send(BLOCK[: TOTAL % len(BLOCK)])


def send_chunks(connection: RawConnection) -> None:
    size = b"%x\r\n" % len(BLOCK)
    for _ in range(TOTAL // len(BLOCK)):
        connection.send(size + BLOCK + b"\r\n")
    connection.send(b"%x\r\n" % (TOTAL % len(BLOCK)) + BLOCK[: TOTAL % len(BLOCK)] + b"\r\n0\r\n\r\n")


BODIES = {"length": (LENGTH, send_length), "chunks": (CHUNKED, send_chunks)}


def count_payload(connection: RawConnection, framing: bytes) -> int:
    """Return the number of bytes until the end of the body, including the framing of chunks."""
    received = 0
    tail = b""
    while not (received >= TOTAL if framing is LENGTH else tail.endswith(b"\r\n0\r\n\r\n")):
        data = connection.socket.recv(65536)
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
    """Wait until the count stops changing, and return it."""
    last, changed_at = -1, time.monotonic()
    while time.monotonic() < changed_at + STUCK_SECONDS:
        before, last = last, harness.call(count)
        if before != last:
            changed_at = time.monotonic()
    return last


@pytest.mark.parametrize(("framing", "send"), BODIES.values(), ids=BODIES)
def test_a_large_request_passes_in_little_memory(
    harness: Harness, framing: bytes, send: Callable[[RawConnection], None]
) -> None:
    client = harness.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\n" + framing + b"\r\n")
    upstream = harness.upstream.accept()
    upstream.receive_head()
    with small_memory():
        sending = threading.Thread(target=send, args=(client,))
        sending.start()
        # The upstream does not read yet, so the proxy accepts no more than the kernel's buffers hold.
        assert wait_until_stuck(harness, lambda: harness.server.counters.bytes_from_clients) < TOTAL
        assert sending.is_alive()
        assert count_payload(upstream, framing) >= TOTAL
        sending.join()
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert client.receive_head() == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(("framing", "send"), BODIES.values(), ids=BODIES)
def test_a_large_response_passes_in_little_memory(
    harness: Harness, framing: bytes, send: Callable[[RawConnection], None]
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
    # Both connections still work.
    client.send(b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
    assert upstream.receive_head().startswith(b"GET /next HTTP/1.1\r\n")


def test_pipelined_requests_wait_while_the_client_does_not_read_the_responses(harness: Harness) -> None:
    client = harness.connect()
    request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
    body = BLOCK[:8192]
    client.send(request * RESPONSES)
    upstream = harness.upstream.accept()
    with small_memory():
        serving = threading.Thread(target=serve, args=(upstream, body, RESPONSES))
        serving.start()
        assert wait_until_stuck(harness, lambda: harness.server.counters.requests) < RESPONSES
        for _ in range(RESPONSES):
            assert client.receive_head().startswith(b"HTTP/1.1 200 OK\r\n")
            assert client.receive_exactly(len(body)) == body
        serving.join()


def test_a_request_waits_while_the_client_does_not_read_the_previous_response(harness: Harness) -> None:
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


def serve(upstream: RawConnection, body: bytes, times: int) -> None:
    for _ in range(times):
        upstream.receive_head()
        upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def test_a_tunnel_slows_down_the_faster_side(harness: Harness) -> None:
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
