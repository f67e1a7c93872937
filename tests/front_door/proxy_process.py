"""The proxy as a process of its own."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from testkit.processes import free_port
from testkit.service_process import ServiceProcess, running_service, spawn_service

# What a program says that has lost control of itself.
TROUBLE = ("Traceback", "never retrieved", "never awaited", "was destroyed")


@asynccontextmanager
async def running_proxy(
    environment: Mapping[str, str], *arguments: str, port: int | None = None
) -> AsyncIterator[ServiceProcess]:
    """Once it is ready; at the end its log must be free of trouble, and it is gone."""
    async with running_service("proxy", environment, *arguments, port=port) as proxy:
        yield proxy
        assert_calm(proxy)


def start_proxy(
    environment: Mapping[str, str], *arguments: str, port: int, directory: Path
) -> ServiceProcess:
    """Not waited for: it may well end before it is ready."""
    return spawn_service("proxy", environment, arguments, port, directory)


def assert_calm(proxy: ServiceProcess) -> None:
    log = proxy.log.read_text()
    assert not any(each in log for each in TROUBLE), log


def free_pair() -> int:
    """The first of two ports in a row that nobody listens on."""
    while True:
        first = free_port()
        try:
            with socket.create_server(("127.0.0.1", first + 1)):
                return first
        except (OSError, OverflowError):
            continue


def accepts(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True
