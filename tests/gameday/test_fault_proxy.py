"""The fault proxy in front of a real S3: the effect of each mode on a client."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from codehub.adapters.s3.client import open_client
from codehub.ports import ArchiveStore
from gameday.faults.modes import PASS_THROUGH, CutConnections, Down, ErrorResponses, Mode, Slow, Stalled
from gameday.faults.proxy import FaultProxy
from testkit.waiting import until
from tests.buckets import READ_SECONDS, Bucket

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client


MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Harness:
    proxy: FaultProxy
    bucket: Bucket
    client: "S3Client"

    async def write(self, content: bytes, key: str = "some") -> None:
        await self.client.put_object(Bucket=self.bucket.name, Key=key, Body=content)

    async def read(self, key: str = "some") -> bytes:
        response = await self.client.get_object(Bucket=self.bucket.name, Key=key)
        async with response["Body"] as body:
            return await body.read()


@pytest.fixture
async def harness(bucket: Bucket) -> AsyncIterator[Harness]:
    port = urlsplit(bucket.server.endpoint_url).port
    assert port is not None
    async with (
        FaultProxy.open(port) as proxy,
        # One attempt, so that every fault reaches the test.
        open_client(
            ArchiveStore(bucket.name, bucket.server.access_key, bucket.server.secret_key, proxy.url),
            read_seconds=READ_SECONDS,
            attempts=1,
        ) as client,
    ):
        yield Harness(proxy, bucket, client)


async def test_bytes_pass_unchanged_in_both_directions(harness: Harness) -> None:
    content = os.urandom(3 * MEGABYTE)
    await harness.write(content)
    assert await harness.read() == content
    assert await harness.bucket.read("some") == content


@pytest.mark.parametrize("status", [500, 503])
async def test_requests_get_an_error_and_do_not_reach_the_server(harness: Harness, status: int) -> None:
    await harness.write(b"before")
    with harness.proxy.inject(ErrorResponses(status)):
        with pytest.raises(ClientError) as caught:
            # More than the socket buffers hold: the response comes while the client still sends.
            await harness.write(os.urandom(2 * MEGABYTE))
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
        assert caught.value.response["Error"]["Code"] in {"InternalError", "SlowDown"}
        with pytest.raises(ClientError):
            await harness.client.head_object(Bucket=harness.bucket.name, Key="some")
    assert await harness.read() == b"before"
    assert harness.proxy.counts[f"responses {status}"] == 2


async def test_an_upload_is_cut_in_the_middle(harness: Harness) -> None:
    with harness.proxy.inject(CutConnections(MEGABYTE)), pytest.raises(BotoCoreError):
        await harness.write(os.urandom(3 * MEGABYTE))
    assert await harness.bucket.keys() == []
    assert harness.proxy.counts["connections cut"] > 0


async def test_a_download_is_cut_in_the_middle(harness: Harness) -> None:
    await harness.bucket.write("some", os.urandom(3 * MEGABYTE))
    with harness.proxy.inject(CutConnections(MEGABYTE)):
        response = await harness.client.get_object(Bucket=harness.bucket.name, Key="some")
        async with response["Body"] as body:
            with pytest.raises(aiohttp.ClientPayloadError):
                await body.read()
    assert len(await harness.read()) == 3 * MEGABYTE


async def test_small_requests_survive_a_late_cut(harness: Harness) -> None:
    with harness.proxy.inject(CutConnections(MEGABYTE)):
        await harness.write(b"small")
    assert harness.proxy.counts["connections cut"] == 0


async def test_a_stalled_connection_continues_afterwards(harness: Harness) -> None:
    with harness.proxy.inject(Stalled()):
        writing = asyncio.create_task(harness.write(b"late"))

        async def held_back() -> bool:
            return harness.proxy.counts["chunks held back"] > 0

        await until(held_back, "the request is held back")
        assert not writing.done()
        assert len(harness.proxy.stalled_ports) == 1
        assert await harness.bucket.keys() == []
    await writing
    assert not harness.proxy.stalled_ports
    assert await harness.bucket.read("some") == b"late"


async def test_every_request_fails_while_s3_is_down(harness: Harness) -> None:
    await harness.write(b"before")
    with harness.proxy.inject(Down()):
        with pytest.raises(BotoCoreError):
            await harness.write(b"lost")
        with pytest.raises(BotoCoreError):
            await harness.read()
    assert await harness.read() == b"before"


async def test_a_slow_connection_is_fast_again_when_the_fault_ends(harness: Harness) -> None:
    content = os.urandom(MEGABYTE)
    with harness.proxy.inject(Slow(bytes_per_second=1)):
        writing = asyncio.create_task(harness.write(content))

        async def slowed_down() -> bool:
            return harness.proxy.counts["bytes slowed down"] > 0

        await until(slowed_down, "the request is slowed down")
        assert not writing.done()
    await writing
    assert await harness.bucket.read("some") == content


async def test_a_fault_affects_connections_that_are_already_open(harness: Harness) -> None:
    await harness.write(b"before")
    connections = harness.proxy.counts["connections"]
    with harness.proxy.inject(ErrorResponses(503)), pytest.raises(ClientError):
        await harness.read()
    assert harness.proxy.counts["connections"] == connections


async def test_of_overlapping_faults_the_latest_is_active(harness: Harness) -> None:
    seen: list[Mode] = []
    with harness.proxy.inject(ErrorResponses(500)):
        with harness.proxy.inject(Stalled()):
            seen.append(harness.proxy.mode)
        seen.append(harness.proxy.mode)
    assert [*seen, harness.proxy.mode] == [Stalled(), ErrorResponses(500), PASS_THROUGH]


async def test_a_missing_server_looks_like_a_broken_connection() -> None:
    async with FaultProxy.open(upstream_port=9) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        finally:
            writer.close()
