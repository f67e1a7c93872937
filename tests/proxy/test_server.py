"""The proxy as a whole: limits, figures, credentials, leaving."""

import asyncio
import socket
import threading

import pytest

from proxy.routing import Answer
from proxy.server import ProxyServer
from proxy.shared import Limits
from tests.proxy.bench import Bench
from tests.proxy.test_tunnel import open_tunnel

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def test_more_connections_than_the_limit_are_turned_away(idle_bench: Bench) -> None:
    idle_bench.start(Limits(connections=1))
    idle_bench.router.decide = lambda _head: Answer(204)
    first = idle_bench.connect()
    first.send(GET)
    first.receive_head()
    second = idle_bench.connect()
    assert second.receive_rest().startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    first.send(GET)
    assert first.receive_head() == b"HTTP/1.1 204 No Content\r\n\r\n"


def test_more_connections_of_one_credential_than_the_limit_are_turned_away(idle_bench: Bench) -> None:
    idle_bench.start(Limits(connections_per_credential=1))
    idle_bench.router.change(credential="one")
    open_tunnel(idle_bench)
    client = idle_bench.connect()
    client.send(GET)
    assert client.receive_to(b"connections\n").startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert idle_bench.call(lambda: idle_bench.server.count_connections("one")) == 1
    idle_bench.router.change(credential="two")
    client.send(GET)
    assert idle_bench.upstream.accept().receive_head()
    assert idle_bench.call(lambda: idle_bench.server.count_connections("two")) == 1


def test_a_connection_counts_only_for_the_credential_that_it_used_last(bench: Bench) -> None:
    client = bench.connect()
    bench.router.change(credential="one")
    client.send(GET)
    upstream = bench.upstream.accept()
    upstream.receive_head()
    upstream.send(OK)
    client.receive_to(b"hi")
    bench.router.change(credential="two")
    client.send(GET)
    upstream.receive_head()
    assert bench.call(lambda: bench.server.count_connections("one")) == 0
    assert bench.call(lambda: bench.server.end_credential("one")) == 0
    assert bench.call(lambda: bench.server.end_credential("two")) == 1
    assert client.is_ended()
    assert upstream.is_ended()


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
