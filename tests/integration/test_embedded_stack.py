"""The real embedded servers: crashes, stops and starts lose no data."""

import asyncio
import json
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import redis.asyncio

from codehub.adapters.s3.client import open_client
from codehub.bootstrap import connect_temporal
from codehub.db.session import connect
from codehub.embedded.child_process import ChildState
from codehub.embedded.data_dir import load_or_create_credentials
from codehub.embedded.probes import http_status
from codehub.embedded.servers.seaweed import SERVERS
from codehub.embedded.stack import EmbeddedStack
from codehub.embedded.state import AlreadyRunning
from codehub.ports import ArchiveStore
from codehub.settings import Settings, load_settings
from testkit.processes import process_tree, wait_until_ended

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from types_aiobotocore_s3.client import S3Client

PARTS = ("postgres", "redis", "s3", "temporal")
TAKEN = ("redis", "s3.s3", "s3.master", "s3.volume")


class Contents:
    """One piece of data in each server."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.mark = uuid.uuid4().hex

    async def write(self) -> None:
        connection = await connect(self.environment["CODEHUB_DATABASE_URL"])
        await connection.execute("CREATE TABLE IF NOT EXISTS marks (mark text)")
        await connection.execute("INSERT INTO marks VALUES ($1)", self.mark)
        await connection.close()
        async with redis.asyncio.from_url(self.environment["CODEHUB_REDIS_URL"]) as client:
            await client.set(self.mark, "kept")
        async with self._s3() as s3:
            await s3.put_object(Bucket="codehub", Key=self.mark, Body=b"kept")
        temporal = await connect_temporal(load_settings(self.environment))
        await temporal.start_workflow("Nobody", id=self.mark, task_queue="nobody")

    async def found(self) -> list[str]:
        """Return the servers that still have the data."""
        checks = {"postgres": self._row, "redis": self._key, "s3": self._object, "temporal": self._workflow}
        return [name for name, check in checks.items() if await check()]

    async def _row(self) -> bool:
        connection = await connect(self.environment["CODEHUB_DATABASE_URL"])
        try:
            return bool(await connection.fetchval("SELECT count(*) FROM marks WHERE mark = $1", self.mark))
        finally:
            await connection.close()

    async def _key(self) -> bool:
        async with redis.asyncio.from_url(self.environment["CODEHUB_REDIS_URL"]) as client:
            return await client.get(self.mark) == b"kept"

    async def _object(self) -> bool:
        async with self._s3() as s3:
            answer = await s3.get_object(Bucket="codehub", Key=self.mark)
            async with answer["Body"] as body:
                return bool(await body.read() == b"kept")

    async def _workflow(self) -> bool:
        temporal = await connect_temporal(load_settings(self.environment))
        description = await temporal.get_workflow_handle(self.mark).describe()
        return description.workflow_type == "Nobody"

    def _s3(self) -> "AbstractAsyncContextManager[S3Client]":
        store = ArchiveStore(
            "unused",
            self.environment["CODEHUB_S3_ACCESS_KEY"],
            self.environment["CODEHUB_S3_SECRET_KEY"],
            self.environment["CODEHUB_S3_ENDPOINT_URL"],
        )
        return open_client(store)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stack")


@pytest.fixture(scope="module")
async def stack(data_dir: Path) -> AsyncIterator[EmbeddedStack]:
    async with EmbeddedStack(data_dir, Settings()) as running:
        yield running


async def test_killed_servers_restart_with_their_data(stack: EmbeddedStack) -> None:
    contents = Contents(stack.environment)
    await contents.write()
    before = pids(stack)
    await asyncio.gather(*(stack.kill(name) for name in PARTS))
    await asyncio.gather(*(stack.wait_ready(name) for name in PARTS))
    assert await contents.found() == list(PARTS)
    assert set(before.values()).isdisjoint(pids(stack).values())


async def test_everything_listens_on_loopback_only(stack: EmbeddedStack) -> None:
    listening: dict[str, int] = {}
    for name, pid in pids(stack).items():
        connections = [
            connection for member in process_tree(pid) for connection in member.net_connections(kind="inet")
        ]
        addresses = {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN}
        assert addresses == {"127.0.0.1"}, name
        listening[name] = len({each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN})
    assert listening["s3"] == 2 * len(SERVERS)
    # The others are in a network of their own.
    assert listening["temporal"] == 1


async def test_no_secret_is_visible_to_other_users(stack: EmbeddedStack, data_dir: Path) -> None:
    secrets = list(asdict(load_or_create_credentials(stack.data.credentials)).values())
    arguments = [
        argument
        for pid in pids(stack).values()
        for member in process_tree(pid)
        for argument in member.cmdline()
    ]
    logs = "".join(log.read_text(errors="replace") for log in (data_dir / "logs").iterdir())
    assert [secret for secret in secrets if secret in logs or secret in " ".join(arguments)] == []
    public = [path for path in data_dir.rglob("*") if path.is_file() and path.stat().st_mode & 0o004]
    texts = [path.read_bytes() for path in public if path.stat().st_size < 1_000_000]
    assert [secret for secret in secrets for text in texts if secret.encode() in text] == []


async def test_servers_require_their_password(stack: EmbeddedStack) -> None:
    environment = stack.environment
    async with redis.asyncio.from_url(
        f"redis://{environment['CODEHUB_REDIS_URL'].partition('@')[2]}"
    ) as client:
        with pytest.raises(redis.exceptions.AuthenticationError):
            await client.ping()
    port = int(environment["CODEHUB_S3_ENDPOINT_URL"].rpartition(":")[2])
    assert await http_status(port, "/codehub") == 403
    ports = json.loads(stack.data.ports.read_text())["ports"]
    # Without a key, the parts behind the gateway would serve every archive to any local user.
    assert await http_status(ports["s3.filer"], "/buckets/codehub/") == 401


async def test_data_directory_has_one_stack_at_a_time(stack: EmbeddedStack, data_dir: Path) -> None:
    with pytest.raises(AlreadyRunning):
        await EmbeddedStack(data_dir, Settings()).__aenter__()
    assert stack.data.state.exists()


async def test_stacks_run_side_by_side_and_share_external_servers(
    stack: EmbeddedStack, tmp_path: Path
) -> None:
    shared = {
        name: value
        for name, value in stack.environment.items()
        if name.startswith(("CODEHUB_S3", "CODEHUB_DAT"))
    }
    async with EmbeddedStack(tmp_path, load_settings(shared)) as other:
        states = {status.name: status.state for status in other.statuses}
        assert states == {
            "postgres": ChildState.EXTERNAL,
            "redis": ChildState.RUNNING,
            "s3": ChildState.EXTERNAL,
            "temporal": ChildState.RUNNING,
        }
        assert other.environment["CODEHUB_REDIS_URL"] != stack.environment["CODEHUB_REDIS_URL"]
        assert other.environment["CODEHUB_DATABASE_URL"] == stack.environment["CODEHUB_DATABASE_URL"]
        await other.restart("redis")


async def test_stopped_stack_leaves_nothing_and_finds_its_data_again(
    stack: EmbeddedStack, data_dir: Path
) -> None:
    contents = Contents(stack.environment)
    await contents.write()
    families = [member for pid in pids(stack).values() for member in process_tree(pid)]
    ports = json.loads(stack.data.ports.read_text())["ports"]
    await stack.stop()
    assert wait_until_ended(families) == []
    assert list((data_dir / "run").iterdir()) == []
    sockets = {f"seaweedfs-{server}-grpc-{ports[f's3.{server}.grpc']}.sock" for server in SERVERS}
    assert [name for name in sockets if (Path("/tmp") / name).exists()] == []  # noqa: S108
    with ExitStack() as others:
        # Another process took some of the ports meanwhile.
        for name in TAKEN:
            others.enter_context(socket.create_server(("127.0.0.1", ports[name])))
        async with EmbeddedStack(data_dir, Settings()) as second:
            contents.environment = second.environment
            assert await contents.found() == list(PARTS)
    chosen = json.loads(stack.data.ports.read_text())["ports"]
    assert {name for name, port in chosen.items() if port != ports[name]} == set(TAKEN)


def pids(stack: EmbeddedStack) -> dict[str, int]:
    return {status.name: status.pid for status in stack.statuses if status.pid is not None}
