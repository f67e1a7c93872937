"""The proxy as a whole: limits, figures, credentials, leaving."""

import asyncio
import socket
import threading
from collections.abc import Awaitable
from dataclasses import replace

import pytest

from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response, Routed
from proxy.transport.server import ProxyServer
from proxy.transport.shared import Latencies, Limits
from tests.proxy.harness import Bench
from tests.proxy.test_tunnel import open_tunnel
from tests.proxy.wire import undated

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def test_more_connections_than_the_limit_are_turned_away(idle_bench: Bench) -> None:
    idle_bench.start(Limits(connections=1))
    idle_bench.router.decide = lambda _head: Response(204)
    first = idle_bench.connect()
    first.send(GET)
    first.receive_head()
    second = idle_bench.connect()
    assert second.receive_rest().startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    first.send(GET)
    assert undated(first.receive_head()) == b"HTTP/1.1 204 No Content\r\n\r\n"


def test_more_connections_of_one_holder_than_the_limit_are_turned_away(idle_bench: Bench) -> None:
    idle_bench.start(Limits(connections_per_holder=1))
    idle_bench.router.change(credential="session", holder="ada")
    open_tunnel(idle_bench)
    client = idle_bench.connect()
    # Another credential does not help.
    idle_bench.router.change(credential="token")
    client.send(GET)
    assert client.receive_to(b"connections\n").startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert idle_bench.call(lambda: idle_bench.server.count_connections("ada")) == 1
    assert idle_bench.call(lambda: idle_bench.server.credentials) == {"session"}
    idle_bench.router.change(holder="bob")
    client.send(GET)
    assert idle_bench.upstream.accept().receive_head()
    assert idle_bench.call(lambda: idle_bench.server.count_connections("bob")) == 1
    assert idle_bench.call(lambda: idle_bench.server.credentials) == {"session", "token"}


def test_a_connection_counts_only_for_whom_it_was_used_last(bench: Bench) -> None:
    client = bench.connect()
    bench.router.change(credential="one", holder="ada")
    client.send(GET)
    upstream = bench.upstream.accept()
    upstream.receive_head()
    upstream.send(OK)
    client.receive_to(b"hi")
    bench.router.change(credential="two", holder="bob")
    client.send(GET)
    upstream.receive_head()
    assert bench.call(lambda: bench.server.count_connections("ada")) == 0
    assert bench.call(lambda: bench.server.credentials) == {"two"}
    assert bench.call(lambda: bench.server.end_credential("one")) == 0
    assert bench.call(lambda: bench.server.end_credential("two")) == 1
    assert client.is_ended()
    assert upstream.is_ended()
    assert bench.call(lambda: bench.server.credentials) == set()
    assert bench.call(lambda: bench.server.count_connections("bob")) == 0


def test_a_credential_that_ended_while_a_request_was_routed_can_be_ended_again(bench: Bench) -> None:
    asked = asyncio.Event()
    decided: asyncio.Future[Routed] = bench.call(lambda: asyncio.get_running_loop().create_future())

    def decide(head: RequestHead) -> Awaitable[Routed]:
        asked.set()
        return decided

    bench.router.decide = decide
    client = bench.connect()
    client.send(GET)
    bench.run(asked.wait())
    assert bench.call(lambda: bench.server.end_credential("one")) == 0
    bench.call(lambda: decided.set_result(replace(bench.router.forward, credential="one")))
    bench.upstream.accept().receive_head()
    assert bench.call(lambda: bench.server.credentials) == {"one"}
    assert bench.call(lambda: bench.server.end_credential("one")) == 1
    assert client.is_ended()


def test_a_route_for_a_client_that_has_just_left_is_not_followed(bench: Bench) -> None:
    route = replace(bench.router.forward, credential="one", holder="ada")

    async def leave(head: RequestHead) -> Routed:
        # The connection ends after this is done and before anybody looks at it.
        asyncio.get_running_loop().call_soon(bench.server.end_credential, "one")
        return route

    client = bench.connect()
    bench.router.change(credential="one", holder="ada")
    client.send(GET)
    upstream = bench.upstream.accept()
    upstream.receive_head()
    upstream.send(OK)
    client.receive_to(b"hi")
    bench.router.decide = leave
    client.send(GET)
    assert client.is_ended()
    assert bench.call(lambda: bench.server.credentials) == set()
    assert bench.call(lambda: bench.server.count_connections("ada")) == 0
    assert not upstream.has_input()


def test_figures_tell_what_happened(bench: Bench) -> None:
    bench.exchange(GET, OK)
    bench.refused(b"nonsense\r\n\r\n")
    counters = bench.server.counters
    assert counters.connections == 2
    assert counters.requests == 1
    assert counters.bytes_from_clients == len(GET) + len(b"nonsense\r\n\r\n")
    assert counters.bytes_to_clients > len(OK)
    assert counters.refusals == {"request line": 1}
    assert counters.upstream_failures == {}


def test_open_tunnels_are_counted_until_they_end(bench: Bench) -> None:
    client, upstream = open_tunnel(bench)
    counters = bench.server.counters
    assert (counters.tunnels, counters.open_tunnels) == (1, 1)
    client.close()
    assert upstream.is_ended()
    upstream.close()
    bench.wait_until(lambda: counters.open_tunnels == 0, "the tunnel is no longer counted")
    assert counters.tunnels == 1


def test_the_time_to_the_first_byte_of_an_answer_is_counted_once(bench: Bench) -> None:
    client = bench.connect()
    client.send(GET)
    upstream = bench.upstream.accept()
    upstream.receive_head()
    latencies = bench.server.counters.upstream_latencies
    assert latencies.count == 0
    for piece in (OK[:9], OK[9:-2], OK[-2:]):
        upstream.send(piece)
    client.receive_to(b"hi")
    assert latencies.count == 1
    assert latencies.total > 0


@pytest.mark.parametrize(("seconds", "place"), [(0, 0), (0.001, 0), (0.002, 1), (30, 8), (31, 9)])
def test_latencies_are_counted_by_their_upper_bound(seconds: float, place: int) -> None:
    latencies = Latencies()
    latencies.observe(seconds)
    assert latencies.counts[place] == latencies.count == 1
    assert latencies.total == seconds


def test_draining_closes_idle_connections_and_accepts_no_more(bench: Bench) -> None:
    idle = bench.connect()
    bench.call(lambda: None)
    bench.drain(deadline=10)
    assert idle.receive_rest() == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", bench.port))


def test_draining_lets_a_request_end_and_tells_the_client(bench: Bench) -> None:
    client = bench.connect()
    client.send(GET)
    upstream = bench.upstream.accept()
    upstream.receive_head()
    draining = threading.Thread(target=bench.drain, args=(10,))
    draining.start()
    while not bench.call(lambda: bench.server.draining):
        pass
    upstream.send(OK)
    assert client.receive_rest() == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    draining.join()
    assert bench.server.open_connections == 0


def test_draining_ends_what_does_not_end_by_itself(bench: Bench) -> None:
    tunnel, _ = open_tunnel(bench)
    client = bench.connect()
    client.send(GET)
    bench.upstream.accept().receive_head()
    bench.drain(deadline=0.1)
    assert tunnel.is_ended()
    assert client.is_ended()
    assert bench.server.open_connections == 0
    assert bench.server.resting_upstreams == 0


def test_two_proxies_can_share_a_port(idle_bench: Bench) -> None:
    async def listen_twice() -> bool:
        first, second = ProxyServer(idle_bench.router), ProxyServer(idle_bench.router)
        port = await first.listen("127.0.0.1", 0, reuse_port=True)
        same = await second.listen("127.0.0.1", port, reuse_port=True) == port
        await asyncio.gather(first.drain(0), second.drain(0))
        return same

    assert idle_bench.run(listen_twice())
