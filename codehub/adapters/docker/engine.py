"""Connects to a Docker engine and translates its errors."""

import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus

import aiohttp
from aiodocker import Docker, DockerError

from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

UNIX_SCHEME = "unix://"
# Timeout of one request. Stops, pulls and jobs have their own.
RESPONSE_SECONDS = 60
# aiodocker's status code for an engine that cannot be reached.
NO_CONNECTION = 900
# Error messages of an engine that is starting or shutting down, or whose runtime is.
UNAVAILABLE_MESSAGES = (
    *("shutting down", "containerd", "connection refused", "transport is closing", "context canceled"),
    "database not open",
)
MAX_ERROR_LENGTH = 500
ELSEWHERE = "the Docker engine is not on this machine, so it cannot share UNIX sockets with CodeHub"
PUBLISH_INSTEAD = (
    "use an engine on this machine, or let other users of its host connect to IDEs with "
    "CODEHUB_DOCKER_PUBLISH_PORTS=true and CODEHUB_DOCKER_EGRESS=direct"
)


@contextlib.asynccontextmanager
async def open_engine(url: str, response_seconds: float = RESPONSE_SECONDS) -> AsyncIterator[Docker]:
    """Prepare a connection. It sends no request yet, so a process can start while the engine is down."""
    timeout = aiohttp.ClientTimeout(total=response_seconds, connect=10)
    # No limit of connections: jobs and followed logs hold theirs for long, and other requests would wait.
    if url.startswith(UNIX_SCHEME):
        connector: aiohttp.BaseConnector = aiohttp.UnixConnector(url.removeprefix(UNIX_SCHEME), limit=0)
        url = f"{UNIX_SCHEME}localhost"
    else:
        connector = aiohttp.TCPConnector(limit=0)
    async with connector, Docker(url, connector=connector, timeout=timeout) as engine:
        yield engine


async def engine_version(engine: Docker) -> str:
    with translate_read_errors():
        response = await engine.version()
    return str(response["Version"])


async def is_on_this_machine(engine: Docker) -> bool:
    """Return whether containers of this engine can share UNIX sockets with this process."""
    response = await engine.version()
    # Both ends of a UNIX socket need the same kernel; a virtual machine, such as Docker Desktop's, has its
    # own.
    is_local = isinstance(engine.connector, aiohttp.UnixConnector)
    return is_local and response.get("KernelVersion") == os.uname().release


@contextlib.contextmanager
def translate_read_errors() -> Iterator[None]:
    """Raise Transient(UNREACHABLE) for every error: a failed read says nothing about what exists."""
    try:
        yield
    except (DockerError, aiohttp.ClientError, TimeoutError, OSError) as error:
        raise unreachable(error) from error


@contextlib.contextmanager
def translate_change_errors() -> Iterator[None]:
    """Raise Transient: ACTION_FAILED if the engine refuses a change, UNREACHABLE if it does not respond."""
    try:
        yield
    except DockerError as error:
        if error.status == NO_CONNECTION or any(text in error.message for text in UNAVAILABLE_MESSAGES):
            raise unreachable(error) from error
        raise Transient(ErrorReason.ACTION_FAILED, f"Docker refused: {error_text(error)}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise unreachable(error) from error


@contextlib.contextmanager
def ignore_statuses(*statuses: HTTPStatus) -> Iterator[None]:
    """Ignore responses with these statuses."""
    try:
        yield
    except DockerError as error:
        if error.status not in statuses:
            raise


def unreachable(error: Exception) -> Transient:
    return Transient(
        ErrorReason.UNREACHABLE, f"Docker does not answer ({error_text(error)}); check that its engine runs."
    )


def error_text(error: Exception) -> str:
    text = error.message if isinstance(error, DockerError) else str(error) or type(error).__name__
    return text.strip()[:MAX_ERROR_LENGTH]
