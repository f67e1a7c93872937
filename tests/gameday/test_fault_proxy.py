"""The fault proxy between a real S3 and its clients: each mood is what a client really meets."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aioboto3
import aiohttp
import pytest
from aiobotocore.config import AioConfig
from botocore.exceptions import BotoCoreError, ClientError

from gameday.faults.modes import PASSING, Answering, Away, Cutting, Mode, Silent, Slow
from gameday.faults.proxy import FaultProxy
from testkit.waiting import until
from tests.fixtures_s3 import Bucket, bucket, s3_server

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client

__all__ = ["bucket", "s3_server"]

MEGABYTE = 1024 * 1024
# It shall meet every fault itself, and not try again behind our back.
ONCE = AioConfig(retries={"mode": "standard", "total_max_attempts": 1}, s3={"addressing_style": "path"})
_session = aioboto3.Session()


@dataclass(frozen=True)
class Harness:
    proxy: FaultProxy
    bucket: Bucket
    client: "S3Client"

    async def write(self, content: bytes, key: str = "some") -> None:
        await self.client.put_object(Bucket=self.bucket.name, Key=key, Body=content)

    async def read(self, key: str = "some") -> bytes:
        answer = await self.client.get_object(Bucket=self.bucket.name, Key=key)
        async with answer["Body"] as body:
            return await body.read()


@pytest.fixture
async def harness(bucket: Bucket) -> AsyncIterator[Harness]:
    port = urlsplit(bucket.server.endpoint_url).port
    assert port is not None
    async with (
        FaultProxy.open(port) as proxy,
        _session.client(
            "s3",
            endpoint_url=proxy.url,
            region_name="us-east-1",
            aws_access_key_id=bucket.server.access_key,
            aws_secret_access_key=bucket.server.secret_key,
            config=ONCE,
        ) as client,
    ):
        yield Harness(proxy, bucket, client)


async def test_bytes_go_through_unchanged_both_ways(harness: Harness) -> None:
    content = os.urandom(3 * MEGABYTE)
    await harness.write(content)
    assert await harness.read() == content
    assert await harness.bucket.read("some") == content


@pytest.mark.parametrize("status", [500, 503])
async def test_requests_are_answered_with_an_error_and_do_not_arrive(harness: Harness, status: int) -> None:
    await harness.write(b"before")
    with harness.proxy.trouble(Answering(status)):
        with pytest.raises(ClientError) as caught:
            # More than the sockets hold: the answer comes while the client still sends.
            await harness.write(os.urandom(2 * MEGABYTE))
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
        assert caught.value.response["Error"]["Code"] in {"InternalError", "SlowDown"}
        with pytest.raises(ClientError):
            await harness.client.head_object(Bucket=harness.bucket.name, Key="some")
    assert await harness.read() == b"before"
    assert harness.proxy.counts[f"answers {status}"] == 2


async def test_an_upload_is_cut_in_the_middle(harness: Harness) -> None:
    with harness.proxy.trouble(Cutting(MEGABYTE)), pytest.raises(BotoCoreError):
        await harness.write(os.urandom(3 * MEGABYTE))
    assert await harness.bucket.keys() == []
    assert harness.proxy.counts["connections cut"] > 0


async def test_a_download_is_cut_in_the_middle(harness: Harness) -> None:
    await harness.bucket.write("some", os.urandom(3 * MEGABYTE))
    with harness.proxy.trouble(Cutting(MEGABYTE)):
        answer = await harness.client.get_object(Bucket=harness.bucket.name, Key="some")
        async with answer["Body"] as body:
            with pytest.raises(aiohttp.ClientPayloadError):
                await body.read()
    assert len(await harness.read()) == 3 * MEGABYTE


async def test_small_requests_survive_a_late_cut(harness: Harness) -> None:
    with harness.proxy.trouble(Cutting(MEGABYTE)):
        await harness.write(b"small")
    assert harness.proxy.counts["connections cut"] == 0


async def test_nothing_goes_through_while_it_is_silent_and_everything_afterwards(harness: Harness) -> None:
    with harness.proxy.trouble(Silent()):
        writing = asyncio.create_task(harness.write(b"late"))

        async def held_back() -> bool:
            return harness.proxy.counts["pieces held back"] > 0

        await until(held_back, "the request is held back")
        assert not writing.done()
        assert len(harness.proxy.held_ports) == 1
        assert await harness.bucket.keys() == []
    await writing
    assert not harness.proxy.held_ports
    assert await harness.bucket.read("some") == b"late"


async def test_nobody_gets_through_to_one_that_is_away(harness: Harness) -> None:
    await harness.write(b"before")
    with harness.proxy.trouble(Away()):
        with pytest.raises(BotoCoreError):
            await harness.write(b"lost")
        with pytest.raises(BotoCoreError):
            await harness.read()
    assert await harness.read() == b"before"


async def test_a_slow_connection_moves_on_at_once_when_it_is_over(harness: Harness) -> None:
    content = os.urandom(MEGABYTE)
    with harness.proxy.trouble(Slow(bytes_per_second=1)):
        writing = asyncio.create_task(harness.write(content))

        async def slowed_down() -> bool:
            return harness.proxy.counts["bytes slowed down"] > 0

        await until(slowed_down, "the request is slowed down")
        assert not writing.done()
    await writing
    assert await harness.bucket.read("some") == content


async def test_an_open_connection_meets_a_trouble_that_begins_later(harness: Harness) -> None:
    await harness.write(b"before")
    connections = harness.proxy.counts["connections"]
    with harness.proxy.trouble(Answering(503)), pytest.raises(ClientError):
        await harness.read()
    assert harness.proxy.counts["connections"] == connections


async def test_of_overlapping_troubles_the_latest_counts_until_it_ends(harness: Harness) -> None:
    seen: list[Mode] = []
    with harness.proxy.trouble(Answering(500)):
        with harness.proxy.trouble(Silent()):
            seen.append(harness.proxy.mode)
        seen.append(harness.proxy.mode)
    assert [*seen, harness.proxy.mode] == [Silent(), Answering(500), PASSING]


async def test_a_server_that_is_away_looks_like_a_broken_connection() -> None:
    async with FaultProxy.open(upstream_port=9) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        finally:
            writer.close()
