"""`codehub temporal-ui`: opens the Web UI of the embedded Temporal while the command runs."""

import asyncio
import contextlib
import secrets
import ssl
from typing import Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.stack import data_dir_of
from codehub.embedded.child_process import ChildState
from codehub.embedded.free_ports import LOOPBACK
from codehub.embedded.state import read_running_stack
from codehub.settings import Settings, load_settings

HEAD_SECONDS = 10.0
CHUNK_BYTES = 65536
REFUSED = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def temporal_ui(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 means a free one.")] = 0,
) -> None:
    """Serve the Web UI of the embedded Temporal on this machine until Ctrl-C, at a secret URL."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(load_settings(), port))


async def _serve(settings: Settings, port: int) -> None:
    temporal_port, context = _embedded_temporal(settings)
    # Browsers resolve every name below localhost to loopback. The random name keeps others out.
    host = f"{secrets.token_hex(16)}.localhost"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            head = await _read_head(reader)
            if not _names_host(head, host):
                writer.write(REFUSED)
                return
            upstream = await asyncio.open_connection(LOOPBACK, temporal_port, ssl=context)
            upstream[1].write(head)
            await asyncio.gather(_copy(reader, upstream[1]), _copy(upstream[0], writer))

    server = await asyncio.start_server(serve, LOOPBACK, port)
    typer.echo(f"http://{host}:{server.sockets[0].getsockname()[1]}/")
    typer.echo("Open this URL and keep it to yourself: it can change workflows. Stop with Ctrl-C.", err=True)
    await server.serve_forever()


def _embedded_temporal(settings: Settings) -> tuple[int, ssl.SSLContext]:
    # Imported here, because these modules load slowly.
    from codehub.embedded.certificates import client_context  # noqa: PLC0415
    from codehub.embedded.servers.registry import load_config  # noqa: PLC0415
    from codehub.embedded.servers.temporal import NAME, PORT, certificates  # noqa: PLC0415

    data = data_dir_of(settings)
    running = read_running_stack(data)
    states = {part.name: part.state for part in running.parts} if running else {}
    if states.get(NAME) is ChildState.EXTERNAL:
        raise CommandError("CodeHub uses an external Temporal.", "Open the Web UI of that server.")
    if NAME not in states:
        raise CommandError(
            f"CodeHub is not running on {data.root}.", "Start it with: codehub up", code=ExitCode.UNAVAILABLE
        )
    return load_config(data, settings).ports[PORT], client_context(certificates(data))


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Return the head of the first request, or nothing if it does not arrive in time."""
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        async with asyncio.timeout(HEAD_SECONDS):
            return await reader.readuntil(b"\r\n\r\n")
    return b""


def _names_host(head: bytes, host: str) -> bool:
    """Return whether the first request is for this host; browsers use a connection for one host only."""
    hosts = [line[5:].strip() for line in head.split(b"\r\n")[1:] if line.lower().startswith(b"host:")]
    return len(hosts) == 1 and secrets.compare_digest(hosts[0].partition(b":")[0], host.encode())


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()
