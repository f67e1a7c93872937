"""The gate to Docker as deployed: a real HAProxy in front of a stand-in for Docker's socket."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from testkit.needs import need_program
from testkit.waiting import until
from tests.deploy.programs import ROOT

GATE = ROOT / "deploy/docker-gate"


@dataclass
class StandIn:
    """An engine that records request lines and echoes attached connections."""

    names: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    attached: bytearray = field(default_factory=bytearray)
    detached: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            await self._answer(head, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = head.split("\r\n", 1)[0]
        if "\r\nupgrade: tcp\r\n" in head.lower():
            writer.write(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
            await self._echo(reader, writer)
            return
        # HAProxy's health checks have no host, and the gate itself asks for the name of a container.
        if "\r\nhost:" in head.lower() and "haproxy" not in head.lower():
            self.requests.append(line)
        body = self._inspected(line).encode()
        length = f"Content-Length: {len(body)}".encode()
        writer.write(b"HTTP/1.1 200 OK\r\n%b\r\nConnection: close\r\n\r\n%b" % (length, body))
        await writer.drain()

    def _inspected(self, line: str) -> str:
        """Return what the engine knows about a container."""
        found = [name for identifier, name in self.names.items() if f"/{identifier}/json" in line]
        return (
            json.dumps({"Args": ['"Name":"/codehub-ws-'], "Name": found[0]}, separators=(",", ":"))
            if found
            else "{}"
        )

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1024):
            self.attached += data
            writer.write(data)
            await writer.drain()
        writer.write(b"bye")
        await writer.drain()
        self.detached.set()


@dataclass(frozen=True)
class Gate:
    """The read, write and health sockets of a running gate."""

    read: Path
    write: Path
    health: Path


@asynccontextmanager
async def stand_in(socket: Path) -> AsyncIterator[StandIn]:
    engine = StandIn()
    server = await asyncio.start_unix_server(engine.serve, socket)
    try:
        yield engine
    finally:
        server.close()


@asynccontextmanager
async def gate_before(engine: Path) -> AsyncIterator[Gate]:
    """Run a gate; yield it once it knows whether the engine answers."""
    haproxy = need_program("haproxy")
    # Not pytest's directory, because the path of a socket must be short.
    with TemporaryDirectory(prefix="codehub-gate-") as directory:
        gate = Gate(*(Path(directory) / name for name in ("read", "write", "health")))
        environment = {
            "DOCKER_GATE_ENGINE": str(engine),
            "DOCKER_GATE_READ": str(gate.read),
            "DOCKER_GATE_WRITE": str(gate.write),
            "DOCKER_GATE_TABLES": str(GATE),
            "DOCKER_GATE_HEALTH": f"unix@{gate.health}",
        }
        process = await asyncio.create_subprocess_exec(
            *(haproxy, "-db", "-f", str(GATE / "haproxy.cfg")),
            env=environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await until(lambda: _decided(gate, process, engine.exists()), "the gate has looked at the engine")
            yield gate
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            await process.wait()


async def _decided(gate: Gate, process: asyncio.subprocess.Process, engine_answers: bool) -> bool:
    assert process.returncode is None, f"haproxy ended with {process.returncode}"
    if not gate.health.exists():
        return False
    return await status_of(gate.health, request("GET /healthz")) == (200 if engine_answers else 503)


def request(start: str, *headers: str) -> bytes:
    """Return the bytes of a request, unnormalized."""
    lines = [f"{start} HTTP/1.1", "Host: docker", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def exchange(socket: Path, data: bytes, *, ends: bool = True) -> bytes:
    """Send the data and return everything up to the end of the connection.

    At our end of file HAProxy may drop requests that it has not begun. With `ends=False` we send none, so the
    last request has to ask for the connection to be closed.
    """
    reader, writer = await asyncio.open_unix_connection(socket)
    try:
        writer.write(data)
        if ends:
            writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


async def status_of(socket: Path, data: bytes) -> int:
    return int((await exchange(socket, data)).split(b" ", 2)[1])
