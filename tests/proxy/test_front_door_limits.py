"""What one client may hold: connections per address, and time for a body."""

import pytest

from codehub.addresses import address_group
from proxy.transport.client_addresses import TrustedProxies, group_of
from proxy.transport.routing import Response
from proxy.transport.server_state import Edge, Limits, Timeouts
from testkit.waiting import DEADLINE_SECONDS
from tests.proxy.harness import Harness
from tests.proxy.test_tunnel import open_tunnel

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
QUICK = 0.3
TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\n"
HEADERS = (("X-Frame-Options", "DENY"), ("Cache-Control", "no-store"))
PROXIED = Edge(trusted_proxies=("127.0.0.0/8", "10.0.0.0/8"))


def post(length: int) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % length


def get_from(*forwarded_for: bytes) -> bytes:
    fields = b"".join(b"X-Forwarded-For: " + each + b"\r\n" for each in forwarded_for)
    return b"GET / HTTP/1.1\r\nHost: h\r\n" + fields + b"\r\n"


@pytest.fixture
def limited(idle_harness: Harness) -> Harness:
    idle_harness.router.decide = lambda _head: Response(204)
    idle_harness.start(Limits(connections_per_address=2), edge=Edge(headers=HEADERS))
    return idle_harness


@pytest.fixture
def proxied(idle_harness: Harness) -> Harness:
    idle_harness.router.decide = lambda _head: Response(204)
    idle_harness.start(Limits(connections_per_address=1), edge=PROXIED)
    return idle_harness


def test_a_dripped_body_gains_no_time(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(body=QUICK))
    client = idle_harness.connect()
    client.send(post(1_000_000))
    idle_harness.upstream.accept().receive_head()
    drips = 0
    while not client.has_input(within=QUICK / 5):
        client.send(b"x")
        drips += 1
        assert drips < DEADLINE_SECONDS / QUICK, "a byte now and then keeps the connection"
    assert client.receive_until_lost().startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_a_body_at_the_lowest_rate_takes_as_long_as_it_needs(idle_harness: Harness) -> None:
    piece = b"x" * 1000
    # Each piece buys two seconds, of which it may keep one.
    idle_harness.start(Limits(body_bytes_per_second=500), Timeouts(body=1.0))
    client = idle_harness.connect()
    client.send(post(15 * len(piece)))
    upstream = idle_harness.upstream.accept()
    upstream.receive_head()
    for _ in range(15):
        assert not client.has_input(within=0.15)
        client.send(piece)
    assert upstream.receive_exactly(15 * len(piece)) == 15 * piece


def test_a_client_that_reads_no_responses_does_not_stay(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(idle=QUICK, head=QUICK, linger=QUICK))
    idle_harness.router.decide = lambda _head: Response(200, body=b"x" * 1_000_000)
    client = idle_harness.connect()
    client.send(GET * 100)
    idle_harness.wait_until(lambda: idle_harness.server.open_connections == 1, "the client is connected")
    idle_harness.wait_until(lambda: idle_harness.server.open_connections == 0, "the connection has ended")


def test_connections_of_one_address_above_the_limit_are_turned_away(limited: Harness) -> None:
    kept = [limited.connect() for _ in range(2)]
    for each in kept:
        each.send(GET)
        each.receive_head()
    refused = limited.connect().receive_rest()
    assert refused.startswith(TOO_MANY)
    assert b"\r\nX-Frame-Options: DENY\r\nCache-Control: no-store\r\n" in refused
    for each in kept:
        # Those that are open stay in use.
        each.send(GET)
        assert each.receive_head().startswith(b"HTTP/1.1 204 ")
    kept.pop().close()
    limited.wait_until(lambda: limited.server.open_connections == 1, "the connection has ended")
    third = limited.connect()
    third.send(GET)
    assert third.receive_head().startswith(b"HTTP/1.1 204 ")


def test_a_websocket_counts_for_its_address_until_it_ends(idle_harness: Harness) -> None:
    idle_harness.start(Limits(connections_per_address=1))
    client, upstream = open_tunnel(idle_harness)
    assert idle_harness.connect().receive_rest().startswith(TOO_MANY)
    client.close()
    upstream.close()
    idle_harness.wait_until(lambda: idle_harness.server.open_connections == 0, "the tunnel has ended")
    again = idle_harness.connect()
    again.send(GET)
    idle_harness.upstream.accept().receive_head()


def test_clients_behind_a_trusted_proxy_are_counted_apart(proxied: Harness) -> None:
    first, second = proxied.connect(), proxied.connect()
    for connection, address in ((first, b"192.0.2.1"), (second, b"192.0.2.2")):
        connection.send(get_from(address))
        assert connection.receive_head().startswith(b"HTTP/1.1 204 ")
    assert proxied.router.peers == ["192.0.2.1", "192.0.2.2"]
    second.send(get_from(b"192.0.2.1"))
    assert second.receive_to(b"this address\n").startswith(TOO_MANY)
    # The proxy's connection goes on with the next client's request.
    second.send(get_from(b"192.0.2.3"))
    assert second.receive_head().startswith(b"HTTP/1.1 204 ")


def test_the_upstream_learns_the_client_behind_a_trusted_proxy_only(idle_harness: Harness) -> None:
    idle_harness.start(edge=PROXIED)
    received, _ = idle_harness.exchange(get_from(b"6.6.6.6", b"192.0.2.1, 10.1.1.1"), b"")
    assert b"\r\nX-Forwarded-For: 192.0.2.1\r\n" in received
    assert b"6.6.6.6" not in received


def test_a_strangers_word_about_its_address_is_ignored(harness: Harness) -> None:
    fields = b"X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n"
    received, _ = harness.exchange(b"GET / HTTP/1.1\r\nHost: h\r\n" + fields + b"\r\n", b"")
    assert b"\r\nX-Forwarded-For: 127.0.0.1\r\n" in received
    assert b"6.6.6.6" not in received


@pytest.mark.parametrize(
    ("forwarded_for", "client"),
    [
        (None, "10.0.0.1"),
        (b"", "10.0.0.1"),
        (b"192.0.2.1", "192.0.2.1"),
        (b"6.6.6.6, 192.0.2.1", "192.0.2.1"),
        (b"6.6.6.6, 192.0.2.1, 10.0.0.2", "192.0.2.1"),
        (b"10.0.0.3, 10.0.0.2", "10.0.0.3"),
        (b"192.0.2.1:5060", "192.0.2.1"),
        (b"[2001:db8::1]:443", "2001:db8::1"),
        (b"::ffff:192.0.2.1", "192.0.2.1"),
        (b"6.6.6.6, unknown", "10.0.0.1"),
        (b"6.6.6.6,,", "10.0.0.1"),
    ],
)
def test_the_client_is_the_nearest_address_that_is_not_trusted(
    forwarded_for: bytes | None, client: str
) -> None:
    assert TrustedProxies(("10.0.0.0/8",)).client_of("10.0.0.1", forwarded_for) == client


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:ffff::2", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_addresses_of_one_customer_are_one_group(address: str, group: str) -> None:
    assert group_of(address) == group
    # The API's rate limits and lockouts count in the same way.
    assert address_group(address) == group


def test_every_response_of_the_proxy_has_the_default_headers(idle_harness: Harness) -> None:
    idle_harness.start(Limits(head_bytes=1000), Timeouts(head=QUICK), Edge(headers=HEADERS))
    idle_harness.router.decide = lambda _head: Response(200, (("cache-control", "max-age=1"),))
    for request, status in (
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h", 408),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 2000, 431),
        (b"TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 200),
    ):
        client = idle_harness.connect()
        client.send(request)
        response = client.receive_until_lost()
        assert response.startswith(b"HTTP/1.1 %d " % status)
        assert b"\r\nX-Frame-Options: DENY\r\n" in response
        assert response.lower().count(b"\r\ncache-control:") == 1
