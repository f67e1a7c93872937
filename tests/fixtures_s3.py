"""Fixtures for tests that need S3: one server for the run, an empty bucket for each test."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from codehub.adapters.s3.client import open_client
from codehub.ports import ArchiveStore
from testkit.seaweed import S3Server, seaweed

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client

# One for all tests, emptied before each: the first object of a new bucket takes the server 0.2 seconds.
NAME = "test-bucket"
_SERVER = pytest.StashKey[S3Server]()
# A busy machine can be slow.
READ_SECONDS = 60


@dataclass(frozen=True)
class Bucket:
    name: str
    server: S3Server
    client: "S3Client"

    async def read(self, key: str) -> bytes:
        answer = await self.client.get_object(Bucket=self.name, Key=key)
        body = answer["Body"]
        async with body:
            return await body.read()

    async def write(self, key: str, content: bytes) -> None:
        await self.client.put_object(Bucket=self.name, Key=key, Body=content)

    async def remove(self, key: str) -> None:
        await self.client.delete_object(Bucket=self.name, Key=key)

    async def keys(self) -> list[str]:
        listing = await self.client.list_objects_v2(Bucket=self.name)
        return [entry["Key"] for entry in listing.get("Contents", [])]

    async def clear(self) -> None:
        for key in await self.keys():
            await self.remove(key)
        listing = await self.client.list_multipart_uploads(Bucket=self.name)
        for upload in listing.get("Uploads", []):
            await self.client.abort_multipart_upload(
                Bucket=self.name, Key=upload["Key"], UploadId=upload["UploadId"]
            )

    async def unfinished_uploads(self) -> list[str]:
        listing = await self.client.list_multipart_uploads(Bucket=self.name)
        return [upload["UploadId"] for upload in listing.get("Uploads", [])]


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> S3Server:
    # Every module that imports this fixture has its own copy of it; the server is one for all.
    if _SERVER not in pytestconfig.stash:
        stack = ExitStack()
        pytestconfig.stash[_SERVER] = stack.enter_context(seaweed(tmp_path_factory.mktemp("seaweed")))
        pytestconfig.add_cleanup(stack.close)
    return pytestconfig.stash[_SERVER]


@pytest.fixture
async def bucket(s3_server: S3Server) -> AsyncIterator[Bucket]:
    store = ArchiveStore(NAME, s3_server.access_key, s3_server.secret_key, s3_server.endpoint_url)
    async with open_client(store, read_seconds=READ_SECONDS) as client:
        with suppress(client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou):
            await client.create_bucket(Bucket=NAME)
        fresh = Bucket(NAME, s3_server, client)
        await fresh.clear()
        yield fresh
