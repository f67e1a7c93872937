"""The archive that is being written and its meta in S3; every failure of the store becomes a JobError."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from aiohttp import ClientError as HttpError
from botocore.exceptions import BotoCoreError, ClientError

from storage_job import meta
from storage_job.errors import unreachable
from storage_job.request import JobRequest

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client

_NOT_FOUND = {"NoSuchKey", "404", "NotFound"}
_NO_UPLOAD = {"NoSuchUpload", "404", "NotFound"}
_session = get_session()


@contextlib.contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError, HttpError, TimeoutError, ConnectionError) as error:
        raise unreachable(str(error) or type(error).__name__) from error


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def _is_missing(error: ClientError) -> bool:
    return _code(error) in _NOT_FOUND


class ArchiveObject:
    """The archive named by a request, and the meta that commits it."""

    def __init__(self, client: "S3Client", request: JobRequest) -> None:
        self.client = client
        self.bucket = request.bucket
        self.key = request.key
        self.meta_key = request.key + meta.SUFFIX

    async def size(self) -> int | None:
        """The stored size, or None if there is no such object."""
        with translated():
            try:
                answer = await self.client.head_object(Bucket=self.bucket, Key=self.key)
            except ClientError as error:
                if _is_missing(error):
                    return None
                raise
            return answer["ContentLength"]

    async def read_meta(self) -> bytes | None:
        # A GET and not a HEAD: only its answer tells a missing object from a missing bucket.
        with translated():
            try:
                answer = await self.client.get_object(Bucket=self.bucket, Key=self.meta_key)
            except ClientError as error:
                if _is_missing(error):
                    return None
                raise
            body = answer["Body"]
            async with body:
                # All of it or an error: a read with a limit gives what has come so far, and to take half a
                # meta for a bad one would undo a commit.
                return await body.read() if answer["ContentLength"] <= meta.LIMIT_BYTES else b""

    async def write_meta(self, content: bytes) -> None:
        with translated():
            await self.client.put_object(Bucket=self.bucket, Key=self.meta_key, Body=content)

    async def remove_meta(self) -> None:
        with translated():
            await self.client.delete_object(Bucket=self.bucket, Key=self.meta_key)

    async def abort_leftovers(self) -> None:
        """End the unfinished uploads of killed runs: they are invisible, yet cost space."""
        with translated():
            pages = self.client.get_paginator("list_multipart_uploads")
            async for page in pages.paginate(Bucket=self.bucket, Prefix=self.key):
                for upload in page.get("Uploads", []):
                    if upload["Key"] == self.key:
                        await self.abort(upload["UploadId"])

    async def abort(self, upload_id: str) -> None:
        with translated():
            try:
                await self.client.abort_multipart_upload(Bucket=self.bucket, Key=self.key, UploadId=upload_id)
            except ClientError as error:
                if _code(error) not in _NO_UPLOAD:
                    raise


@contextlib.asynccontextmanager
async def open_archive(request: JobRequest) -> AsyncIterator[ArchiveObject]:
    config = AioConfig(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 3},
        max_pool_connections=request.parts_in_flight + 2,
        # Many S3 servers know no checksum trailers; TLS or the signature covers the content anyway.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if request.endpoint_url else "auto"},
    )
    async with _session.create_client(
        "s3",
        endpoint_url=request.endpoint_url,
        region_name=request.region,
        aws_access_key_id=request.access_key,
        aws_secret_access_key=request.secret_key,
        config=config,
    ) as client:
        yield ArchiveObject(client, request)
