"""The gateway's protocols on one socket: CONNECT, plain HTTP and SOCKS 5."""

import asyncio

import pytest

from testkit.internet import SILENT_PORT, WEB_PORT, Internet
from testkit.rows import new_workspace_id
from testkit.waiting import until
from tests.egress.clients import Client, open_socks, open_tunnel
from tests.egress.conftest import RunningGateway, running_gateway

SITE = f"site.example:{WEB_PORT}"


@pytest.mark.parametrize("host", ["site.example", "SITE.example.", "198.51.100.2"])
async def test_each_protocol_reaches_a_public_server(gateway: RunningGateway, host: str) -> None:
    client = await gateway.client()
    assert b"outside 198.51.100.2" in await client.connect_and_get(f"{host}:{WEB_PORT}")
    assert b"outside 198.51.100.2" in await client.get(f"http://{host}/")
    assert b"outside 198.51.100.2" in await client.socks_get(host, WEB_PORT)


@pytest.mark.parametrize("host", ["six.example", "[2a0e:97c0::2]"])
async def test_ipv6_works(gateway: RunningGateway, host: str) -> None:
    client = await gateway.client()
    assert b"outside 2a0e:97c0::2" in await client.connect_and_get(f"{host}:{WEB_PORT}")
    assert b"outside 2a0e:97c0::2" in await client.socks_get(host.strip("[]"), WEB_PORT)


async def test_a_forwarded_request_names_the_checked_host_and_hides_the_proxy(
    gateway: RunningGateway,
) -> None:
    client = await gateway.client()
    head = (
        b"GET http://site.example/a/b?c=d#e HTTP/1.1\r\nHost: other.example\r\nAccept: text/plain\r\n"
        b"Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive\r\n\r\n"
    )
    _, _, seen = (await client.send(head)).partition(b"\r\n\r\n")
    assert seen.splitlines()[1:] == [
        b"GET /a/b?c=d HTTP/1.1",
        b"Host: site.example",
        b"Accept: text/plain",
        b"Connection: close",
    ]


async def test_a_body_passes_in_both_directions(gateway: RunningGateway) -> None:
    client = await gateway.client()
    sent = b"x" * 4_000_000
    async with client.connect() as (reader, writer):
        assert b" 200 " in await open_tunnel((reader, writer), SITE)
        # The web server echoes everything that is not HTTP.
        writer.write(b"echo\n" + sent)
        writer.write_eof()
        assert await reader.read() == b"echo\n" + sent


async def test_what_a_client_sends_before_the_response_is_not_lost(gateway: RunningGateway) -> None:
    client = await gateway.client()
    request = f"CONNECT {SITE} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode()
    assert b"outside" in await client.send(request)


async def test_a_head_may_arrive_byte_by_byte(gateway: RunningGateway) -> None:
    client = await gateway.client()
    async with client.connect() as (reader, writer):
        for byte in f"CONNECT {SITE} HTTP/1.1\r\n\r\n".encode():
            writer.write(bytes((byte,)))
            await asyncio.sleep(0)
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    async with client.connect() as (reader, writer):
        address = b"\x03\x0csite.example" + WEB_PORT.to_bytes(2)
        for byte in b"\x05\x02\x00\x01" + b"\x05\x01\x00" + address:
            writer.write(bytes((byte,)))
            await asyncio.sleep(0)
        assert await reader.readexactly(12) == b"\x05\x00" + b"\x05\x00\x00\x01" + bytes(6)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: site.example\r\n\r\n", b"400"),
        (b"GET https://site.example/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET ftp://site.example/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://user:secret@site.example/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://site.example:0/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://site.example:99999/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http:///path HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://site.example/ HTTP/2.0\r\n\r\n", b"400"),
        (b"GET http://site.example/ HTTP/1.1\r\nbad field\r\n\r\n", b"400"),
        (b"GET http://site.example/ HTTP/1.1\r\nA: b\nHost: c\r\n\r\n", b"400"),
        (b"GET http://site.example/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", b"400"),
        (b"CONNECT site.example HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT site.example:80/x HTTP/1.1\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"CONNECT nowhere.example:80 HTTP/1.1\r\n\r\n", b"502"),
        (b"CONNECT site.example:9 HTTP/1.1\r\n\r\n", b"502"),
        (b"GET http://site.example/ HTTP/1.1\r\nA: " + b"a" * 20_000 + b"\r\n\r\n", b"431"),
        (b"GET http://site.example/" + b"a" * 20_000, b"431"),
    ],
)
async def test_what_is_no_proxy_request_is_explained(
    gateway: RunningGateway, request_bytes: bytes, status: bytes
) -> None:
    response = await (await gateway.client()).send(request_bytes)
    assert response.split(b" ")[1] == status
    assert b"CodeHub: " in response


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (b"\x05\x01\x02", b"\x05\xff"),
        (b"\x05\x00", b"\x05\xff"),
        (b"\x05\x01\x00\x05\x02\x00\x01\1\2\3\4\0\x50", b"\x05\x00\x05\x07\x00\x01" + bytes(6)),
        (b"\x05\x01\x00\x05\x01\x00\x07\1\2\3\4\0\x50", b"\x05\x00\x05\x08\x00\x01" + bytes(6)),
        (b"\x05\x01\x00\x05\x01\x00\x03\x0csite.example\0\0", b"\x05\x00\x05\x02\x00\x01" + bytes(6)),
        (b"\x05\x01\x00\x05\x01\x00\x03\x00\0\x50", b"\x05\x00\x05\x02\x00\x01" + bytes(6)),
    ],
)
async def test_socks_requests_that_it_does_not_take(
    gateway: RunningGateway, sent: bytes, received: bytes
) -> None:
    assert await (await gateway.client()).send(sent) == received


async def test_socks_failures_have_their_codes(gateway: RunningGateway) -> None:
    client = await gateway.client()
    async with client.connect() as stream:
        assert (await open_socks(stream, "nowhere.example", 80))[1] == 4
    async with client.connect() as stream:
        assert (await open_socks(stream, "site.example", 9))[1] == 5


async def test_without_a_valid_token_nothing_is_answered(gateway: RunningGateway) -> None:
    known = await gateway.client()
    forged = Client(gateway.socket, known.workspace_id, key="another key")
    assert await forged.send(f"CONNECT {SITE} HTTP/1.1\r\n\r\n".encode()) == b""
    for line in (b"\n", b"x" * 300, b"CODEHUB-EGRESS/1 x y\n", b"CODEHUB-EGRESS/2" + b" \n"):
        reader, writer = await asyncio.open_unix_connection(str(gateway.socket))
        writer.write(line + f"CONNECT {SITE} HTTP/1.1\r\n\r\n".encode())
        assert await read_all(reader) == b""
        writer.close()


async def test_a_workspace_that_does_not_exist_reaches_nothing(gateway: RunningGateway) -> None:
    stranger = Client(gateway.socket, new_workspace_id())
    assert b"403" in await stranger.connect_and_get(SITE)


async def read_all(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_connections_per_workspace_are_limited(internet: Internet, shared_database_url: str) -> None:
    # A closed connection counts until its other side has closed too or has been idle for this long.
    async with running_gateway(
        internet, shared_database_url, connections_per_workspace="3", idle_seconds="20"
    ) as gateway:
        await connections_per_workspace_are_limited(gateway)


async def test_slow_and_idle_connections_are_cut(internet: Internet, shared_database_url: str) -> None:
    async with running_gateway(internet, shared_database_url, head_seconds="1", idle_seconds="1") as gateway:
        await a_slow_head_is_cut(gateway)
        await an_idle_connection_is_cut(gateway)


async def connections_per_workspace_are_limited(gateway: RunningGateway) -> None:
    client, other = await gateway.client(), await gateway.client()
    async with client.connect() as one, client.connect() as two, client.connect() as three:
        for stream in (one, two, three):
            assert b" 200 " in await open_tunnel(stream, f"site.example:{SILENT_PORT}")
        assert b"503" in await client.connect_and_get(SITE)
        assert b"outside" in await other.connect_and_get(SITE)

    async def has_room() -> bool:
        return b"outside" in await client.connect_and_get(SITE)

    await until(has_room, "closed connections no longer count")


async def a_slow_head_is_cut(gateway: RunningGateway) -> None:
    client = await gateway.client()
    async with client.connect() as (reader, writer):
        writer.write(b"CONNECT ")
        assert await read_all(reader) == b""


async def an_idle_connection_is_cut(gateway: RunningGateway) -> None:
    client = await gateway.client()
    async with client.connect() as (reader, writer):
        assert b" 200 " in await open_tunnel((reader, writer), f"site.example:{SILENT_PORT}")
        assert await read_all(reader) == b""
