"""The connection to a Docker engine, and its errors in the control plane's words."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus

import aiohttp
from aiodocker import Docker, DockerError

from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

UNIX_SCHEME = "unix://"
# Time for one answer. What takes long by nature (a stop, a pull, a job) has its own deadline.
ANSWER_SECONDS = 60
# What aiodocker calls an engine that cannot be reached.
NO_CONNECTION = 900
# What an engine says while it, or the runtime below it, goes down or comes up.
NOT_NOW = (
    *("shutting down", "containerd", "connection refused", "transport is closing", "context canceled"),
    "database not open",
)
WORDS_LENGTH = 500


@contextlib.asynccontextmanager
async def open_engine(url: str, answer_seconds: float = ANSWER_SECONDS) -> AsyncIterator[Docker]:
    """Nothing is asked yet, so an engine that is away keeps nobody from starting."""
    timeout = aiohttp.ClientTimeout(total=answer_seconds, connect=10)
    # Jobs and followed logs hold connections for long; a limit would let them keep everybody else waiting.
    if url.startswith(UNIX_SCHEME):
        connector: aiohttp.BaseConnector = aiohttp.UnixConnector(url.removeprefix(UNIX_SCHEME), limit=0)
        url = f"{UNIX_SCHEME}localhost"
    else:
        connector = aiohttp.TCPConnector(limit=0)
    async with connector, Docker(url, connector=connector, timeout=timeout) as engine:
        yield engine


async def engine_version(engine: Docker) -> str:
    with asking():
        answer = await engine.version()
    return str(answer["Version"])


@contextlib.contextmanager
def asking() -> Iterator[None]:
    """For looks: whatever goes wrong, nothing has been learned."""
    try:
        yield
    except (DockerError, aiohttp.ClientError, TimeoutError, OSError) as error:
        raise silent(error) from error


@contextlib.contextmanager
def acting() -> Iterator[None]:
    """For changes: an engine that refuses has been reached."""
    try:
        yield
    except DockerError as error:
        if error.status == NO_CONNECTION or any(words in error.message for words in NOT_NOW):
            raise silent(error) from error
        raise Transient(ErrorReason.ACTION_FAILED, f"Docker refused: {words_of(error)}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise silent(error) from error


@contextlib.contextmanager
def tolerating(*statuses: HTTPStatus) -> Iterator[None]:
    """Go on where the engine answers that there is nothing to do."""
    try:
        yield
    except DockerError as error:
        if error.status not in statuses:
            raise


def silent(error: Exception) -> Transient:
    return Transient(
        ErrorReason.UNREACHABLE, f"Docker does not answer ({words_of(error)}); check that its engine runs."
    )


def words_of(error: Exception) -> str:
    words = error.message if isinstance(error, DockerError) else str(error) or type(error).__name__
    return words.strip()[:WORDS_LENGTH]
