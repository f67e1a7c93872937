"""An empty bucket on a real S3 server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codehub.adapters.s3.client import open_client
from codehub.ports import ArchiveStore
from testkit.seaweed import S3Server

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client

# All tests share one bucket and empty it first: the first object in a new bucket takes 0.2 seconds.
NAME = "test-bucket"
# A busy machine can be slow.
READ_SECONDS = 60


@dataclass(frozen=True)
class Bucket:
    name: str
    server: S3Server
    client: "S3Client"

    async def read(self, key: str) -> bytes:
        response = await self.client.get_object(Bucket=self.name, Key=key)
        body = response["Body"]
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


@asynccontextmanager
async def open_bucket(server: S3Server) -> AsyncIterator[Bucket]:
    """Open the bucket, which is empty."""
    store = ArchiveStore(NAME, server.access_key, server.secret_key, server.endpoint_url)
    async with open_client(store, read_seconds=READ_SECONDS) as client:
        with suppress(client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou):
            await client.create_bucket(Bucket=NAME)
        bucket = Bucket(NAME, server, client)
        await bucket.clear()
        yield bucket
