"""The cluster of a stage as whoever runs it sees it: a program that breaks and repairs its servers."""

import asyncio
import json
import shlex
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

OPERATE = "operate"
OK = "ok"
DESCRIBE_SECONDS = 60.0
# It repairs everything before it ends, which may include the start of a node.
END_SECONDS = 180.0


class NoCluster(Exception):
    """No cluster can be operated; the message says what to do."""


class RequestFailed(OSError):
    """The program could not carry out a request."""


@dataclass(frozen=True)
class ClusterDescription:
    """What the program says about its cluster, which must be on this machine."""

    kubeconfig: Path
    host_address: str
    """Where Pods reach servers of this machine."""
    storage_class: str
    nodes: tuple[str, ...]


class ClusterOperator:
    """Sends requests to the program: a line for each, answered by a line."""

    def __init__(self, process: asyncio.subprocess.Process, description: ClusterDescription) -> None:
        self._process = process
        self._turn = asyncio.Lock()
        self._broken: Counter[str] = Counter()
        self.description = description

    async def request(self, *words: str) -> None:
        """Carry out a request; raise RequestFailed with the program's own words."""
        # A cancelled request would leave its answer to the next one.
        await asyncio.shield(asyncio.ensure_future(self._request(words)))

    async def _request(self, words: tuple[str, ...]) -> None:
        async with self._turn:
            assert self._process.stdin is not None  # noqa: S101 (for the type checker)
            self._process.stdin.write(f"{shlex.join(words)}\n".encode())
            await self._process.stdin.drain()
            answer = await _read_line(self._process)
        if answer != OK:
            raise RequestFailed(f"{' '.join(words)}: {answer or 'the program has ended'}")

    @property
    def broken(self) -> list[str]:
        """What is down or frozen now."""
        return sorted(+self._broken)

    @contextmanager
    def breaking(self, name: str) -> Iterator[None]:
        """Count it as broken during the block."""
        self._broken[name] += 1
        try:
            yield
        finally:
            self._broken[name] -= 1


@asynccontextmanager
async def operated_cluster(command: str) -> AsyncIterator[ClusterOperator]:
    """Start the program; at the end let it repair everything."""
    process = await _start(command)
    try:
        async with asyncio.timeout(DESCRIBE_SECONDS):
            line = await _read_line(process)
        yield ClusterOperator(process, _parse(command, line))
    finally:
        await _end(process)


async def _start(command: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    try:
        # In a session of its own: Ctrl-C is for the game, which ends the program in order.
        return await asyncio.create_subprocess_exec(
            *shlex.split(command), OPERATE, stdin=pipe, stdout=pipe, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise NoCluster(f"The program of the cluster does not start: {command} {OPERATE}: {error}") from error


async def _read_line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None  # noqa: S101 (for the type checker)
    return (await process.stdout.readline()).decode(errors="replace").strip()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the input, and wait until the program has repaired everything."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()


def _parse(command: str, line: str) -> ClusterDescription:
    try:
        document = json.loads(line)
        return ClusterDescription(
            Path(document["kubeconfig"]),
            document["host_address"],
            document["storage_class"],
            tuple(document["nodes"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise NoCluster(
            f"No cluster runs, or another program was named: {command} {OPERATE}: {line or 'no output'}"
        ) from error
