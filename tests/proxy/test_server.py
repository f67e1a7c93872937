"""The server: limits, counters, credentials, draining."""

import asyncio
import socket
import threading
from collections.abc import Awaitable
from dataclasses import replace

import pytest

from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response, Routed
from proxy.transport.server import ProxyServer
from proxy.transport.server_state import Latencies, Limits
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import without_dates
from tests.proxy.test_tunnel import open_tunnel

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def test_connections_above_the_limit_are_refused(idle_harness: Harness) -> None:
    idle_harness.start(Limits(connections=1))
    idle_harness.router.decide = lambda _head: Response(204)
    first = idle_harness.connect()
    first.send(GET)
    first.receive_head()
    second = idle_harness.connect()
    assert second.receive_rest().startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    first.send(GET)
    assert without_dates(first.receive_head()) == b"HTTP/1.1 204 No Content\r\n\r\n"


def test_connections_of_one_user_above_the_limit_are_refused(idle_harness: Harness) -> None:
    idle_harness.start(Limits(connections_per_user=1))
    idle_harness.router.change(credential="session", user="ada")
    open_tunnel(idle_harness)
    client = idle_harness.connect()
    # Another credential does not help.
    idle_harness.router.change(credential="token")
    client.send(GET)
    assert client.receive_to(b"of this user\n").startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert idle_harness.call(lambda: idle_harness.server.count_connections("ada")) == 1
    assert idle_harness.call(lambda: idle_harness.server.credentials) == {"session"}
    idle_harness.router.change(user="bob")
    client.send(GET)
    assert idle_harness.upstream.accept().receive_head()
    assert idle_harness.call(lambda: idle_harness.server.count_connections("bob")) == 1
    assert idle_harness.call(lambda: idle_harness.server.credentials) == {"session", "token"}


def test_a_connection_counts_only_for_its_last_user(harness: Harness) -> None:
    client = harness.connect()
    harness.router.change(credential="one", user="ada")
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(OK)
    client.receive_to(b"hi")
    harness.router.change(credential="two", user="bob")
    client.send(GET)
    upstream.receive_head()
    assert harness.call(lambda: harness.server.count_connections("ada")) == 0
    assert harness.call(lambda: harness.server.credentials) == {"two"}
    assert harness.call(lambda: harness.server.end_credential("one")) == 0
    assert harness.call(lambda: harness.server.end_credential("two")) == 1
    assert client.is_ended()
    assert upstream.is_ended()
    assert harness.call(lambda: harness.server.credentials) == set()
    assert harness.call(lambda: harness.server.count_connections("bob")) == 0


def test_a_credential_that_ended_while_a_request_was_routed_can_be_ended_again(harness: Harness) -> None:
    asked = asyncio.Event()
    decided: asyncio.Future[Routed] = harness.call(lambda: asyncio.get_running_loop().create_future())

    def decide(head: RequestHead) -> Awaitable[Routed]:
        asked.set()
        return decided

    harness.router.decide = decide
    client = harness.connect()
    client.send(GET)
    harness.run(asked.wait())
    assert harness.call(lambda: harness.server.end_credential("one")) == 0
    harness.call(lambda: decided.set_result(replace(harness.router.forward, credential="one")))
    harness.upstream.accept().receive_head()
    assert harness.call(lambda: harness.server.credentials) == {"one"}
    assert harness.call(lambda: harness.server.end_credential("one")) == 1
    assert client.is_ended()


def test_a_route_for_a_client_that_has_just_left_is_ignored(harness: Harness) -> None:
    route = replace(harness.router.forward, credential="one", user="ada")

    async def leave(head: RequestHead) -> Routed:
        # The connection ends after this, and before the result is used.
        asyncio.get_running_loop().call_soon(harness.server.end_credential, "one")
        return route

    client = harness.connect()
    harness.router.change(credential="one", user="ada")
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(OK)
    client.receive_to(b"hi")
    harness.router.decide = leave
    client.send(GET)
    assert client.is_ended()
    assert harness.call(lambda: harness.server.credentials) == set()
    assert harness.call(lambda: harness.server.count_connections("ada")) == 0
    assert not upstream.has_input()


def test_counters_count_what_happened(harness: Harness) -> None:
    harness.exchange(GET, OK)
    harness.refused(b"nonsense\r\n\r\n")
    counters = harness.server.counters
    assert counters.connections == 2
    assert counters.requests == 1
    assert counters.bytes_from_clients == len(GET) + len(b"nonsense\r\n\r\n")
    assert counters.bytes_to_clients > len(OK)
    assert counters.refusals == {"request line": 1}
    assert counters.upstream_failures == {}


def test_open_tunnels_are_counted_until_they_end(harness: Harness) -> None:
    client, upstream = open_tunnel(harness)
    counters = harness.server.counters
    assert (counters.tunnels, counters.open_tunnels) == (1, 1)
    client.close()
    assert upstream.is_ended()
    upstream.close()
    harness.wait_until(lambda: counters.open_tunnels == 0, "the tunnel is no longer counted")
    assert counters.tunnels == 1


def test_the_time_to_the_first_byte_of_a_response_is_counted_once(harness: Harness) -> None:
    client = harness.connect()
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    latencies = harness.server.counters.upstream_latencies
    assert latencies.count == 0
    for piece in (OK[:9], OK[9:-2], OK[-2:]):
        upstream.send(piece)
    client.receive_to(b"hi")
    assert latencies.count == 1
    assert latencies.total > 0


@pytest.mark.parametrize(("seconds", "index"), [(0, 0), (0.001, 0), (0.002, 1), (30, 8), (31, 9)])
def test_latencies_are_counted_by_their_upper_bound(seconds: float, index: int) -> None:
    latencies = Latencies()
    latencies.observe(seconds)
    assert latencies.counts[index] == latencies.count == 1
    assert latencies.total == seconds


def test_draining_closes_idle_connections_and_accepts_no_more(harness: Harness) -> None:
    idle = harness.connect()
    harness.call(lambda: None)
    harness.drain(deadline=10)
    assert idle.receive_rest() == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", harness.port))


def test_draining_lets_a_request_end_and_closes_its_connection(harness: Harness) -> None:
    client = harness.connect()
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    draining = threading.Thread(target=harness.drain, args=(10,))
    draining.start()
    while not harness.call(lambda: harness.server.draining):
        pass
    upstream.send(OK)
    assert client.receive_rest() == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    draining.join()
    assert harness.server.open_connections == 0


def test_draining_ends_connections_after_the_deadline(harness: Harness) -> None:
    tunnel, _ = open_tunnel(harness)
    client = harness.connect()
    client.send(GET)
    harness.upstream.accept().receive_head()
    harness.drain(deadline=0.1)
    assert tunnel.is_ended()
    assert client.is_ended()
    assert harness.server.open_connections == 0
    assert harness.server.idle_upstreams == 0


def test_two_proxies_can_share_a_port(idle_harness: Harness) -> None:
    async def listen_twice() -> bool:
        first, second = ProxyServer(idle_harness.router), ProxyServer(idle_harness.router)
        port = await first.listen("127.0.0.1", 0, reuse_port=True)
        same = await second.listen("127.0.0.1", port, reuse_port=True) == port
        await asyncio.gather(first.drain(0), second.drain(0))
        return same

    assert idle_harness.run(listen_twice())
