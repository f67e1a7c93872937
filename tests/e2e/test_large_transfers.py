"""200 MB into a workspace and out of it arrive completely, and the proxy buffers almost nothing."""

import base64
import hashlib
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import read_running_stack
from testkit.deployment import Deployment
from tests.e2e.harness import HOUR_SECONDS, Person

# A piece is 1 MiB in base64, the size of a chunk of JupyterLab's uploads.
PIECE_BYTES = 3 * 256 * 1024
PIECES = 255

Host = dict[str, str]
MAX_GROWTH_KIB = 20 * 1024
RESET_PEAK = "5"


def make_pieces() -> Iterator[bytes]:
    """Yield pieces that all differ."""
    source = random.Random(0)  # noqa: S311 (what it is does not matter, only that it is known)
    return (source.randbytes(PIECE_BYTES) for _ in range(PIECES))


def digest(pieces: Iterator[bytes]) -> str:
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def proxy_memory(deployment: Deployment, what: str) -> int:
    """Return a value in KiB: VmRSS is the current memory, VmHWM the peak since its reset."""
    lines = (proxy_files(deployment) / "status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1])


def proxy_files(deployment: Deployment) -> Path:
    running = read_running_stack(DataDir(deployment.settings.general.data_dir))
    assert running is not None
    return Path("/proc") / str(next(part.pid for part in running.parts if part.name == "proxy"))


@contextmanager
def constant_memory(deployment: Deployment) -> Iterator[None]:
    """Check that the memory of the proxy stays constant; the kernel records the peak."""
    (proxy_files(deployment) / "clear_refs").write_text(RESET_PEAK)
    before = proxy_memory(deployment, "VmRSS")
    yield
    assert proxy_memory(deployment, "VmHWM") - before < MAX_GROWTH_KIB


async def in_one_body() -> AsyncIterator[bytes]:
    yield b'{"type": "file", "format": "base64", "content": "'
    for piece in make_pieces():
        yield base64.b64encode(piece)
    yield b'"}'


async def upload_in_one(person: Person, path: str, host: Host) -> None:
    answer = await person.client.put(path, content=in_one_body(), headers=host)
    assert answer.status_code == 201, answer.text


async def upload_in_pieces(person: Person, path: str, host: Host) -> None:
    """Upload like JupyterLab: the last piece has the number -1."""
    for number, piece in enumerate(make_pieces(), start=1):
        content = base64.b64encode(piece).decode()
        form = {"type": "file", "format": "base64", "content": content}
        body = {**form, "chunk": number if number < PIECES else -1}
        answer = await person.client.put(path, json=body, headers=host)
        assert answer.is_success, answer.text


async def download(person: Person, path: str, host: Host) -> str:
    found = hashlib.sha256()
    async with person.client.stream("GET", path, headers=host) as answer:
        assert answer.status_code == 200
        async for piece in answer.aiter_bytes():
            found.update(piece)
    return found.hexdigest()


@pytest.mark.timeout(600)
async def test_200_mb_pass_each_way_with_constant_memory(person: Person, deployment: Deployment) -> None:
    expected = digest(make_pieces())
    async with person.workspace(standby_ttl_seconds=HOUR_SECONDS) as workspace_id:
        await person.move_to(workspace_id, "RUNNING")
        home = deployment.home(workspace_id)
        host = {"Host": f"{workspace_id}.localhost:{urlsplit(person.url).port}"}
        for upload in (upload_in_one, upload_in_pieces):
            with constant_memory(deployment):
                await upload(person, f"/api/contents/{upload.__name__}", host)
            assert hashlib.sha256((home / upload.__name__).read_bytes()).hexdigest() == expected
        with constant_memory(deployment):
            assert await download(person, "/files/upload_in_one", host) == expected
