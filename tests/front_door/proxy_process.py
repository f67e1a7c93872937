"""The proxy as a separate process."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from codehub.embedded.free_ports import choose_ports
from testkit.processes import free_port
from testkit.service_process import ServiceProcess, running_service, spawn_service

# Signs of an unhandled error in a log.
UNHANDLED = ("Traceback", "never retrieved", "never awaited", "was destroyed")


@asynccontextmanager
async def running_proxy(
    environment: Mapping[str, str], *arguments: str, port: int | None = None
) -> AsyncIterator[ServiceProcess]:
    """Run a proxy; at the end, its log must show no unhandled error."""
    async with running_service("proxy", environment, *arguments, port=port) as proxy:
        yield proxy
        assert_clean_log(proxy)


def start_proxy(
    environment: Mapping[str, str], *arguments: str, port: int, directory: Path
) -> ServiceProcess:
    """Start a proxy without waiting until it is ready: it may fail before that."""
    return spawn_service("proxy", environment, arguments, port, directory)


def assert_clean_log(proxy: ServiceProcess) -> None:
    log = proxy.log.read_text()
    assert not any(each in log for each in UNHANDLED), log


def free_pair() -> int:
    """Return the first of two adjacent free ports."""
    while True:
        first = free_port()
        if choose_ports(["next"], {"next": first + 1})["next"] == first + 1:
            return first


def is_listening(port: int) -> bool:
    """Return whether a server listens on the port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True
