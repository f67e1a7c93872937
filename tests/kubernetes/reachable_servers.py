"""Make the servers of the tests reachable for Pods, which cannot reach the host's loopback interface."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tests.forwarding import forwarding

LOOPBACK = "127.0.0.1"
SERVERS = ("DATABASE_URL", "REDIS_URL", "S3_ENDPOINT_URL", "TEMPORAL_ADDRESS")
TLS_FILES = {"ca.crt": "CA", "tls.crt": "CERT", "tls.key": "KEY"}


@asynccontextmanager
async def reachable_servers(host: str, environment: Mapping[str, str]) -> AsyncIterator[None]:
    """Forward the servers in these settings from an address of the host, at the same ports."""
    async with AsyncExitStack() as stack:
        for name in SERVERS:
            port = _port_of(environment[f"CODEHUB_{name}"])
            listener = socket.create_server((host, port))
            connect = partial(asyncio.open_connection, LOOPBACK, port)
            await stack.enter_async_context(forwarding(listener, connect))
        yield


def settings_for_pods(host: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the address of the host instead of loopback."""
    changed = {f"CODEHUB_{name}": _at(host, environment[f"CODEHUB_{name}"]) for name in SERVERS}
    return {**environment, **changed}


def temporal_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the contents of the files for mTLS, by the names that Secrets give them."""
    return {
        name: Path(environment[f"CODEHUB_TEMPORAL_TLS_{file}_FILE"]).read_text()
        for name, file in TLS_FILES.items()
    }


def _port_of(url: str) -> int:
    return urlsplit(url if "://" in url else f"//{url}").port or 0


def _at(host: str, url: str) -> str:
    if "://" not in url:
        return f"{host}:{_port_of(url)}"
    parts = urlsplit(url)
    credentials, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{credentials}{at}{host}:{parts.port}"))
