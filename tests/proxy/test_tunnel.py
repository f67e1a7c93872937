"""Tunnels: bytes in both directions, half-closes, ends."""

import threading

import pytest

from proxy.transport.server_state import Timeouts
from tests.proxy.harness import Harness, RecordingObserver
from tests.proxy.raw_sockets import RawConnection
from tests.proxy.websocket_frames import BINARY, PING, PONG, TEXT, frame

UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)
SWITCHED = (
    b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
)


def open_tunnel(harness: Harness) -> tuple[RawConnection, RawConnection]:
    client = harness.connect()
    client.send(UPGRADE)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(SWITCH)
    assert client.receive_head() == SWITCHED
    return client, upstream


def test_bytes_pass_in_both_directions(harness: Harness) -> None:
    client, upstream = open_tunnel(harness)
    client.send(frame(TEXT, b"hello"))
    assert upstream.receive_exactly(11) == frame(TEXT, b"hello")
    upstream.send(b"\x81\x02hi")
    assert client.receive_exactly(4) == b"\x81\x02hi"
    assert harness.server.counters.tunnels == 1


def test_bytes_that_arrive_with_the_upgrade_are_not_lost(harness: Harness) -> None:
    client = harness.connect()
    client.send(UPGRADE + frame(TEXT, b"early"))
    upstream = harness.upstream.accept()
    upstream.receive_head()
    assert not upstream.has_input()
    upstream.send(SWITCH + b"\x81\x02hi")
    assert client.receive_head() == SWITCHED
    assert client.receive_exactly(4) == b"\x81\x02hi"
    assert upstream.receive_exactly(11) == frame(TEXT, b"early")


def test_the_observer_sees_what_the_client_sends_and_nothing_else(harness: Harness) -> None:
    observer = RecordingObserver()
    harness.router.change(observer=observer)
    client, upstream = open_tunnel(harness)
    upstream.send(b"\x89\x00\x81\x02hi")
    sent = frame(TEXT, b"work") + frame(PING, b"") + frame(BINARY, b"x" * 1000)
    client.send_in_pieces(sent, 7)
    assert upstream.receive_exactly(len(sent)) == sent
    assert observer.requests == [b"/ws"]
    assert harness.call(lambda: observer.messages) == [
        (TEXT, 4, b"work"),
        (PING, 0, b""),
        (BINARY, 1000, b"x" * 1000),
    ]


def test_an_observer_that_raises_does_not_end_the_tunnel(harness: Harness) -> None:
    class Raising(RecordingObserver):
        def message(self, opcode: int, length: int, start: bytes) -> None:
            raise LookupError(f"deliberate: {opcode}, {length}, {start!r}")

    harness.router.change(observer=Raising())
    client, upstream = open_tunnel(harness)
    for _ in range(2):
        client.send(frame(TEXT, b"hello"))
        assert upstream.receive_exactly(11) == frame(TEXT, b"hello")
    assert harness.server.counters.errors == 1


def test_messages_of_a_megabyte_come_back_from_an_echo(harness: Harness) -> None:
    client, upstream = open_tunnel(harness)
    message = frame(BINARY, bytes(range(256)) * 4096)

    def echo() -> None:
        while data := upstream.socket.recv(65536):
            upstream.send(data)
        upstream.half_close()

    thread = threading.Thread(target=echo)
    thread.start()
    for _ in range(3):
        sending = threading.Thread(target=client.send, args=(message,))
        sending.start()
        assert client.receive_exactly(len(message)) == message
        sending.join()
    client.half_close()
    assert client.receive_rest() == b""
    thread.join()


def test_a_client_that_closes_its_half_still_receives_data(harness: Harness) -> None:
    client, upstream = open_tunnel(harness)
    client.send(b"last words")
    client.half_close()
    assert upstream.receive_rest() == b"last words"
    upstream.send(b"farewell")
    upstream.close()
    assert client.receive_rest() == b"farewell"


def test_an_upstream_that_closes_its_half_still_receives_data(harness: Harness) -> None:
    client, upstream = open_tunnel(harness)
    upstream.send(b"last words")
    upstream.half_close()
    assert client.receive_rest() == b"last words"
    client.send(b"farewell")
    client.half_close()
    assert upstream.receive_rest() == b"farewell"


def test_a_lost_side_ends_the_other_one(harness: Harness) -> None:
    client, upstream = open_tunnel(harness)
    client.reset()
    assert upstream.is_ended()
    client, upstream = open_tunnel(harness)
    upstream.reset()
    assert client.is_ended()


def test_an_idle_tunnel_ends(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(tunnel=0.2))
    client, upstream = open_tunnel(idle_harness)
    assert client.is_ended()
    assert upstream.is_ended()
    idle_harness.drain(deadline=10)
    assert idle_harness.server.open_connections == 0


def test_pings_keep_a_tunnel_open(idle_harness: Harness) -> None:
    timeout = 1.0
    idle_harness.start(timeouts=Timeouts(tunnel=timeout))
    client, upstream = open_tunnel(idle_harness)
    # Lasts for several timeouts.
    for _ in range(12):
        upstream.send(b"\x89\x00")
        assert client.receive_exactly(2) == b"\x89\x00"
        client.send(frame(PONG, b""))
        assert upstream.receive_exactly(6) == frame(PONG, b"")
        assert not client.has_input(within=timeout / 4)


def test_a_revoked_credential_ends_its_tunnels_and_no_others(harness: Harness) -> None:
    harness.router.change(credential="stays")
    other_client, other_upstream = open_tunnel(harness)
    harness.router.change(credential="revoked")
    client, upstream = open_tunnel(harness)
    assert harness.call(lambda: harness.server.end_credential("revoked")) == 1
    assert client.is_ended()
    assert upstream.is_ended()
    other_client.send(b"still here")
    assert other_upstream.receive_exactly(10) == b"still here"


@pytest.mark.parametrize("status", [b"200 OK", b"426 Upgrade Required"])
def test_after_a_declined_upgrade_the_connection_serves_requests(harness: Harness, status: bytes) -> None:
    client = harness.connect()
    client.send(UPGRADE + b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
    assert client.receive_head() == b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"
    assert upstream.receive_head().startswith(b"GET /next HTTP/1.1\r\n")
    assert len(harness.router.heads) == 2


@pytest.mark.parametrize(
    "switch",
    [
        SWITCH.replace(b"WebSocket", b"h2c", 1),
        SWITCH.replace(b"Upgrade: WebSocket\r\n", b""),
        SWITCH.replace(b"Connection: Upgrade\r\n", b""),
    ],
)
def test_an_upgrade_to_another_protocol_is_a_bad_gateway(harness: Harness, switch: bytes) -> None:
    assert harness.exchange(UPGRADE, switch)[1].startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


@pytest.mark.parametrize("method", [b"POST", b"HEAD"])
def test_only_get_without_a_body_is_upgraded(harness: Harness, method: bytes) -> None:
    upstream, client = harness.exchange(UPGRADE.replace(b"GET", method), SWITCH)
    assert b"Upgrade" not in upstream
    assert client.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
