"""The servers of the small internet: a name server, web servers and a silent one. Standard library only."""

import asyncio
import sys
from ipaddress import ip_address
from itertools import count
from typing import cast

DNS_PORT = 53
A, AAAA = 1, 28
# For each name, the addresses of each lookup in turn; the last entry is repeated.
NAMES: dict[str, list[dict[int, list[str]]]] = {
    "site.example": [{A: ["198.51.100.2"]}],
    "other.example": [{A: ["198.51.100.3"]}],
    "six.example": [{AAAA: ["2a0e:97c0::2"]}],
    "local.example": [{A: ["127.0.0.1"]}],
    "local-six.example": [{AAAA: ["::1"]}],
    "mapped.example": [{AAAA: ["::ffff:127.0.0.1"]}],
    "nat64.example": [{AAAA: ["64:ff9b::7f00:1"]}],
    "metadata.example": [{A: ["169.254.169.254"]}],
    "private.example": [{A: ["10.9.8.7"]}],
    "mixed.example": [{A: ["198.51.100.2", "127.0.0.1"]}],
    "machine.example": [{A: ["203.0.113.77"]}],
    # Public for the first lookup, loopback for every later one.
    "rebind.example": [{A: ["198.51.100.2"]}, {A: ["127.0.0.1"]}],
}


class NameServer(asyncio.DatagramProtocol):
    """Answers from the table, with a TTL of 0."""

    def __init__(self) -> None:
        self._asked = {name: count() for name in NAMES}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        labels, end = _read_name(data)
        kind = int.from_bytes(data[end : end + 2])
        name = ".".join(labels).lower()
        answers = [_answer(kind, each) for each in self._addresses(name, kind)]
        flags = b"\x81\x80" if name in NAMES else b"\x81\x83"
        header = data[:2] + flags + b"\0\x01" + len(answers).to_bytes(2) + b"\0\0\0\0"
        self._transport.sendto(header + data[12 : end + 4] + b"".join(answers), address)

    def _addresses(self, name: str, kind: int) -> list[str]:
        if name not in NAMES:
            return []
        times = NAMES[name]
        # A resolver asks for both address families at once; count only the one with answers.
        asked = next(self._asked[name]) if any(kind in each for each in times) else 0
        return times[min(asked, len(times) - 1)].get(kind, [])


def _read_name(data: bytes) -> tuple[list[str], int]:
    labels, position = [], 12
    while length := data[position]:
        labels.append(data[position + 1 : position + 1 + length].decode())
        position += 1 + length
    return labels, position + 1


def _answer(kind: int, address: str) -> bytes:
    packed = ip_address(address).packed
    # A pointer to the name in the question, class IN, and a lifetime of 0.
    return b"\xc0\x0c" + kind.to_bytes(2) + b"\0\x01" + bytes(4) + len(packed).to_bytes(2) + packed


async def serve_page(who: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond to one request with the server's address and the request's head; echo everything else."""
    first = await reader.readline()
    if b"HTTP/1." not in first:
        writer.write(first)
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    else:
        head = first
        while (line := await reader.readline()) not in {b"\r\n", b""}:
            head += line
        own = writer.get_extra_info("sockname")[0].removeprefix("::ffff:")
        body = f"{who} {own}\n".encode() + head
        length = len(body)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (length, body))
    writer.close()


async def stay_silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def main(who: str, web_port: int, silent_port: int | None) -> None:
    await asyncio.start_server(lambda r, w: serve_page(who, r, w), ["0.0.0.0", "::"], web_port)  # noqa: S104
    if silent_port is not None:
        await asyncio.start_server(stay_silent, "0.0.0.0", silent_port)  # noqa: S104
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(NameServer, ("0.0.0.0", DNS_PORT))  # noqa: S104
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    role, web, *silent = sys.argv[1:]
    asyncio.run(main(role, int(web), int(silent[0]) if silent else None))
