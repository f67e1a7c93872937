"""A restore survives broken connections and does not mistake an outage for lost data."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from storage_job.errors import JobError, Reason
from testkit.trees import describe_tree
from tests.buckets import Bucket
from tests.storage_jobs import KEY, archive, path_with_fake, request_for, restore, run_job

HOME_BYTES = 12_000_000
CUT_BYTES = 3_000_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "random").write_bytes(os.urandom(HOME_BYTES))
    return tmp_path / "home"


async def forward(source: asyncio.StreamReader, sink: asyncio.StreamWriter, limit: int | None) -> None:
    """Forward at most `limit` bytes, then close the connection."""
    forwarded = 0
    with contextlib.suppress(ConnectionError):
        while (limit is None or forwarded < limit) and (chunk := await source.read(65_536)):
            forwarded += len(chunk)
            sink.write(chunk)
            await sink.drain()
    sink.close()


@contextlib.asynccontextmanager
async def unreliable_server(bucket: Bucket, cuts: int) -> AsyncIterator[str]:
    """Yield the URL of a relay that breaks the first `cuts` connections within a response."""
    server = urlsplit(bucket.server.endpoint_url)
    connections: list[asyncio.StreamWriter] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        limit = CUT_BYTES if len(connections) <= cuts else None
        server_reader, server_writer = await asyncio.open_connection(server.hostname, server.port)
        await asyncio.gather(forward(reader, server_writer, None), forward(server_reader, writer, limit))

    relay_server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with relay_server:
        yield f"http://127.0.0.1:{relay_server.sockets[0].getsockname()[1]}"
        for connection in connections:
            connection.close()


@contextlib.asynccontextmanager
async def fixed_response(body: bytes) -> AsyncIterator[str]:
    """Yield the URL of a server that sends the same 404 to every request."""

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        writer.write(head + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_download_continues_after_a_broken_connection(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    await archive(bucket, home)
    async with unreliable_server(bucket, cuts=1) as endpoint_url:
        await restore(bucket, volume, endpoint_url=endpoint_url)
    assert describe_tree(volume) == describe_tree(home)


async def test_a_connection_that_keeps_breaking_is_an_outage(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    await archive(bucket, home)
    async with unreliable_server(bucket, cuts=100) as endpoint_url:
        with pytest.raises(JobError) as caught:
            await restore(bucket, volume, endpoint_url=endpoint_url)
    assert caught.value.reason is Reason.UNREACHABLE
    assert describe_tree(volume).keys() == {b".", b"old"}


RESPONSES = {
    "the object": (b"<Error><Code>NoSuchKey</Code></Error>", Reason.DATA_LOST),
    "the bucket": (b"<Error><Code>NoSuchBucket</Code></Error>", Reason.UNREACHABLE),
    "the bucket of that name": (
        b"<Error><Code>NoSuchBucket</Code><Key><Code>NoSuchKey</Code></Key></Error>",
        Reason.UNREACHABLE,
    ),
    "the page": (b"<html><body>404 NoSuchKey</body></html>", Reason.UNREACHABLE),
    "something unknown": (b"", Reason.UNREACHABLE),
}


@pytest.mark.parametrize("missing", RESPONSES)
async def test_only_a_missing_object_is_lost_data(bucket: Bucket, volume: Path, missing: str) -> None:
    body, reason = RESPONSES[missing]
    async with fixed_response(body) as endpoint_url:
        with pytest.raises(JobError) as caught:
            await restore(bucket, volume, endpoint_url=endpoint_url)
    assert caught.value.reason is reason, caught.value.message


FAULTS = [{"secret_key": "wrong"}, {"access_key": "wrong"}, {"archive_url": f"s3://absent/{KEY}"}]


@pytest.mark.parametrize("fault", FAULTS, ids=["wrong secret", "wrong key", "missing bucket"])
async def test_a_store_that_refuses_access_is_not_lost_data(
    bucket: Bucket, home: Path, volume: Path, fault: dict[str, str]
) -> None:
    await archive(bucket, home)
    with pytest.raises(JobError) as caught:
        await restore(bucket, volume, **fault)
    assert caught.value.reason is Reason.UNREACHABLE
    assert "Debug" not in caught.value.message
    assert describe_tree(volume).keys() == {b".", b"old"}


async def test_environment_variables_do_not_change_where_archives_come_from(
    bucket: Bucket, home: Path, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await archive(bucket, home)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another account")
    before = dict(os.environ)
    await restore(bucket, volume)
    assert dict(os.environ) == before
    assert describe_tree(volume) == describe_tree(home)


async def test_an_unreadable_certificate_bundle_is_reported(
    bucket: Bucket, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(volume / "absent.pem"))
    with pytest.raises(JobError, match=r"absent\.pem") as caught:
        await restore(bucket, volume)
    assert caught.value.reason is Reason.UNREACHABLE


async def test_a_committed_archive_counts_even_if_its_home_is_unreadable(
    bucket: Bucket, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await archive(bucket, home)
    monkeypatch.setenv("PATH", path_with_fake(tmp_path / "fakes", "tar", "exit 2"))
    run = await run_job("archive", request_for(bucket, home))
    assert (run.code, run.stderr, run.events[-1]["skipped"]) == (0, "", True)
