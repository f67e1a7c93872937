"""Upstream connections: reused, replaced when stale, routed again when they fail."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from codehub.ports import Upstream
from proxy.transport.routing import Response
from proxy.transport.server_state import Limits, Timeouts
from testkit.processes import free_port
from testkit.waiting import DEADLINE_SECONDS
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import RawConnection, RawUpstream, without_dates

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def request(method: bytes, body: bytes = b"") -> bytes:
    framing = b"Content-Length: %d\r\n" % len(body) if body else b""
    return method + b" / HTTP/1.1\r\nHost: h\r\n" + framing + b"\r\n" + body


GET = request(b"GET")


def rest_one(harness: Harness, client: RawConnection) -> RawConnection:
    """Leave an idle connection in the pool, and return the upstream's side."""
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(OK)
    client.receive_to(b"hi")
    return upstream


def test_the_most_recently_used_connection_is_taken_first(harness: Harness) -> None:
    clients = [harness.connect() for _ in range(3)]
    upstreams = []
    for client in clients:
        client.send(GET)
        upstreams.append(harness.upstream.accept())
    for client, upstream in zip(clients, upstreams, strict=True):
        upstream.receive_head()
        upstream.send(OK)
        client.receive_to(b"hi")
    clients[0].send(GET)
    assert upstreams[2].receive_head().startswith(b"GET ")
    clients[1].send(GET)
    assert upstreams[1].receive_head().startswith(b"GET ")


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS"])
def test_a_stale_connection_is_replaced_for_a_retryable_request(harness: Harness, method: bytes) -> None:
    client = harness.connect()
    stale = rest_one(harness, client)
    client.send(request(method))
    first = stale.receive_head()
    stale.reset()
    fresh = harness.upstream.accept()
    assert fresh.receive_head() == first
    fresh.send(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert client.receive_head() == b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "body"), [(b"POST", b""), (b"DELETE", b""), (b"POST", b"x"), (b"GET", b"x")]
)
def test_a_request_that_is_not_retryable_is_not_retried(harness: Harness, method: bytes, body: bytes) -> None:
    client = harness.connect()
    stale = rest_one(harness, client)
    client.send(request(method, body))
    stale.receive_head()
    stale.reset()
    assert client.receive_rest().startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert harness.upstream.is_untouched()


def test_a_request_is_retried_only_once(harness: Harness) -> None:
    client = harness.connect()
    stale = rest_one(harness, client)
    client.send(GET)
    stale.receive_head()
    stale.reset()
    fresh = harness.upstream.accept()
    fresh.receive_head()
    fresh.reset()
    assert client.receive_rest().startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert harness.upstream.is_untouched()


def test_a_request_whose_response_has_started_is_not_retried(harness: Harness) -> None:
    client = harness.connect()
    stale = rest_one(harness, client)
    client.send(GET)
    stale.receive_head()
    stale.send(b"HTTP/1.1 2")
    stale.close()
    assert client.receive_rest().startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert harness.upstream.is_untouched()


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ],
)
def test_an_upstream_that_closes_is_not_reused(harness: Harness, response: bytes) -> None:
    client = harness.connect()
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(response)
    assert client.receive_to(b"hi") == OK
    assert upstream.is_ended()


def test_a_connection_that_is_idle_for_too_long_is_closed(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(upstream_idle=0.1))
    assert rest_one(idle_harness, idle_harness.connect()).is_ended()


def test_an_old_connection_does_not_become_idle(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(upstream_age=0.0, upstream_idle=60, head=60, idle=60))
    assert rest_one(idle_harness, idle_harness.connect()).is_ended()


def test_idle_connections_have_a_limit(idle_harness: Harness) -> None:
    idle_harness.start(Limits(idle_upstreams_per_key=1))
    clients = [idle_harness.connect() for _ in range(2)]
    upstreams = []
    for client in clients:
        client.send(GET)
        upstreams.append(idle_harness.upstream.accept())
    for client, upstream in zip(clients, upstreams, strict=True):
        upstream.receive_head()
        upstream.send(OK)
        client.receive_to(b"hi")
    assert upstreams[1].is_ended()
    assert not upstreams[0].has_input()


def test_routes_with_other_keys_do_not_share_connections(harness: Harness) -> None:
    client = harness.connect()
    first = rest_one(harness, client)
    harness.router.change(pool_key="another")
    client.send(GET)
    assert harness.upstream.accept().receive_head()
    assert not first.has_input()


def test_a_key_with_a_new_address_drops_its_old_connections(harness: Harness) -> None:
    client = harness.connect()
    first = rest_one(harness, client)
    moved = RawUpstream()
    harness.router.change(upstream=Upstream("127.0.0.1", moved.port, keep_prefix=True))
    client.send(GET)
    assert moved.accept().receive_head()
    assert first.is_ended()
    moved.close()


def test_a_failed_connection_is_routed_again_and_the_body_is_not_lost(
    harness: Harness,
) -> None:
    right = harness.router.forward
    harness.router.change(upstream=Upstream("127.0.0.1", free_port(), keep_prefix=True))
    harness.router.decide_again = lambda _head: replace(right, target=b"/again")
    client = harness.connect()
    client.send(request(b"POST", b"hello"))
    upstream = harness.upstream.accept()
    assert upstream.receive_head().startswith(b"POST /again HTTP/1.1\r\n")
    assert upstream.receive_exactly(5) == b"hello"
    upstream.send(OK)
    assert client.receive_to(b"hi") == OK
    assert harness.router.reroutes == 1


def test_the_router_makes_the_response_for_an_unreachable_upstream(harness: Harness) -> None:
    harness.router.change(upstream=Upstream("127.0.0.1", free_port(), keep_prefix=True))
    client = harness.connect()
    client.send(GET)
    response = without_dates(client.receive_to(b"unreachable: //"))
    assert response == b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 15\r\n\r\nunreachable: //"
    assert harness.router.reroutes == 1
    assert harness.server.counters.upstream_failures == {"connect": 2}


def test_the_router_may_respond_when_the_upstream_is_gone(harness: Harness) -> None:
    harness.router.change(upstream=Upstream("127.0.0.1", free_port(), keep_prefix=True))
    harness.router.decide_again = lambda _head: Response(502, body=b"starting")
    client = harness.connect()
    for _ in range(2):
        client.send(request(b"POST", b"body"))
        assert client.receive_to(b"starting").endswith(b"Content-Length: 8\r\n\r\nstarting")


def test_a_slow_connect_times_out(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(connect=0.1))
    with socket.socket() as full:
        # Nothing accepts, and the backlog holds one, so the next connect hangs.
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with socket.create_connection(full.getsockname()):
            address = Upstream("127.0.0.1", full.getsockname()[1], keep_prefix=True)
            idle_harness.router.change(upstream=address)
            client = idle_harness.connect()
            client.send(GET)
            assert client.receive_head().startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


def test_an_upstream_may_be_a_unix_socket(harness: Harness, tmp_path: Path) -> None:
    path = str(tmp_path / "ide.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        harness.router.change(upstream=Upstream(path, 0, keep_prefix=True))
        client = harness.connect()
        client.send(GET)
        with listening.accept()[0] as upstream:
            assert upstream.recv(4).startswith(b"GET ")
            upstream.sendall(OK)
            assert client.receive_to(b"hi") == OK


def test_every_connection_starts_with_the_preamble_and_later_requests_do_not(
    harness: Harness, tmp_path: Path
) -> None:
    path = str(tmp_path / "ports.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        harness.router.change(upstream=Upstream(path, 0, keep_prefix=True, preamble=b"CONNECT 3000\n"))
        client = harness.connect()
        client.send(GET)
        with listening.accept()[0] as upstream, upstream.makefile("rb") as received:
            assert received.readline() == b"CONNECT 3000\n"
            for _ in range(2):
                assert received.readline().startswith(b"GET ")
                while received.readline() != b"\r\n":
                    pass
                upstream.sendall(OK)
                assert client.receive_to(b"hi") == OK
                client.send(GET)


def test_a_symlink_to_another_socket_is_not_followed(harness: Harness, tmp_path: Path) -> None:
    """A workspace can replace its socket by a symlink, for example to the socket of its neighbor."""
    neighbor, own = tmp_path / "neighbor.sock", tmp_path / "ide.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(neighbor))
        listening.listen()
        listening.settimeout(DEADLINE_SECONDS)
        own.symlink_to(neighbor)
        # The attempt itself works: a plain connect follows the symlink.
        with socket.socket(socket.AF_UNIX) as attempt:
            attempt.connect(str(own))
        listening.accept()[0].close()
        harness.router.change(upstream=Upstream(str(own), 0, keep_prefix=True))
        client = harness.connect()
        client.send(GET)
        assert client.receive_head().startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_an_upstream_with_a_full_backlog_is_asked_again(harness: Harness, tmp_path: Path) -> None:
    path = str(tmp_path / "ide.sock")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as other:
        listening.bind(path)
        listening.listen(0)
        other.connect(path)
        harness.router.change(upstream=Upstream(path, 0, keep_prefix=True))
        client = harness.connect()
        client.send(GET)
        # Only now is there room.
        listening.accept()[0].close()
        listening.settimeout(DEADLINE_SECONDS)
        with listening.accept()[0] as upstream:
            assert upstream.recv(4).startswith(b"GET ")
            upstream.sendall(OK)
            assert client.receive_to(b"hi") == OK
