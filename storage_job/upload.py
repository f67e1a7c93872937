"""Write an archive and its meta to S3; every failure of the store becomes a JobError."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Self

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from aiohttp import ClientError as HttpError
from botocore.exceptions import BotoCoreError, ClientError

from storage_job import meta
from storage_job.errors import action_failed, unreachable
from storage_job.request import JobRequest

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client
    from types_aiobotocore_s3.type_defs import CompletedPartTypeDef

MAX_PARTS = 10_000
_PARTS_PER_SIZE = 2_000
_OBJECT_MISSING = {"NoSuchKey", "404", "NotFound"}
_UPLOAD_MISSING = {"NoSuchUpload", "404", "NotFound"}
_session = get_session()

# Returns the next bytes, at most as many as requested, and none at the end.
Reader = Callable[[int], Awaitable[bytes]]


@contextlib.asynccontextmanager
async def open_archive(request: JobRequest) -> "AsyncIterator[ArchiveObject]":
    config = AioConfig(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 3},
        max_pool_connections=request.parts_in_flight + 2,
        # Many S3 servers do not support checksum trailers; TLS or the signature protects the content anyway.
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


class ArchiveObject:
    """The archive named by a request, and the meta that commits it."""

    def __init__(self, client: "S3Client", request: JobRequest) -> None:
        self.client = client
        self.bucket = request.bucket
        self.key = request.key
        self.meta_key = request.key + meta.SUFFIX

    def start_upload(self, part_size: int, parts_in_flight: int) -> "MultipartUpload":
        return MultipartUpload(self, part_size, parts_in_flight)

    async def size(self) -> int | None:
        """Return the stored size, or None if the object does not exist."""
        with _translated():
            try:
                response = await self.client.head_object(Bucket=self.bucket, Key=self.key)
            except ClientError as error:
                if _code(error) in _OBJECT_MISSING:
                    return None
                raise
            return response["ContentLength"]

    async def read_meta(self) -> bytes | None:
        """Return the meta, empty if it is too large for one, or None if it does not exist."""
        # A GET, not a HEAD: only its response tells a missing object from a missing bucket.
        with _translated():
            try:
                response = await self.client.get_object(Bucket=self.bucket, Key=self.meta_key)
            except ClientError as error:
                if _code(error) in _OBJECT_MISSING:
                    return None
                raise
            body = response["Body"]
            async with body:
                # Read all of it or fail: a limited read returns what has arrived so far, and mistaking half
                # a meta for an invalid one would undo a commit.
                return await body.read() if response["ContentLength"] <= meta.LIMIT_BYTES else b""

    async def write_meta(self, content: bytes) -> None:
        with _translated():
            await self.client.put_object(Bucket=self.bucket, Key=self.meta_key, Body=content)

    async def remove_meta(self) -> None:
        with _translated():
            await self.client.delete_object(Bucket=self.bucket, Key=self.meta_key)

    async def abort_unfinished_uploads(self) -> None:
        """Abort what killed runs left behind: unfinished uploads are invisible, yet take space."""
        with _translated():
            pages = self.client.get_paginator("list_multipart_uploads")
            async for page in pages.paginate(Bucket=self.bucket, Prefix=self.key):
                for upload in page.get("Uploads", []):
                    if upload["Key"] == self.key:
                        await self.abort(upload["UploadId"])

    async def abort(self, upload_id: str) -> None:
        with _translated():
            try:
                await self.client.abort_multipart_upload(Bucket=self.bucket, Key=self.key, UploadId=upload_id)
            except ClientError as error:
                if _code(error) not in _UPLOAD_MISSING:
                    raise


class MultipartUpload:
    """An upload of unknown length with a bounded number of parts in memory.

    Use as `async with`: it is aborted unless `complete` was reached.
    """

    def __init__(self, archive: ArchiveObject, part_size: int, parts_in_flight: int) -> None:
        self._archive = archive
        self._part_size = part_size
        self._slots = asyncio.Semaphore(parts_in_flight)
        self._sending: set[asyncio.Task[None]] = set()
        self._parts: list[CompletedPartTypeDef] = []
        self._upload_id: str | None = None

    async def __aenter__(self) -> Self:
        with _translated():
            response = await self._archive.client.create_multipart_upload(
                Bucket=self._archive.bucket, Key=self._archive.key, ContentType="application/zstd"
            )
        self._upload_id = response["UploadId"]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        if self._upload_id is not None:
            # Report the original failure, not this one; the next run aborts what is left.
            with contextlib.suppress(Exception):
                await self._archive.abort(self._upload_id)

    async def send(self, read: Reader, on_sent: Callable[[int], object]) -> None:
        """Send everything that `read` returns; call `on_sent` with the size of each part that arrived."""
        for part_number in range(1, MAX_PARTS + 1):
            await self._slots.acquire()
            self._collect()
            part = await read(size_of_part(part_number, self._part_size))
            if not part and part_number > 1:
                break
            self._sending.add(asyncio.create_task(self._send_part(part_number, part, on_sent)))
            del part  # Only the task refers to it now, so it is freed as soon as it has been sent.
        else:
            raise action_failed("The archive has more than 10,000 parts. Raise part_size, then try again.")
        await asyncio.gather(*self._sending)

    async def complete(self) -> None:
        parts = sorted(self._parts, key=lambda part: part["PartNumber"])
        with _translated():
            await self._archive.client.complete_multipart_upload(
                Bucket=self._archive.bucket,
                Key=self._archive.key,
                UploadId=self._upload_id or "",
                MultipartUpload={"Parts": parts},
            )
        self._upload_id = None

    def _collect(self) -> None:
        """Drop the parts that have arrived; raise if one has failed."""
        done = {task for task in self._sending if task.done()}
        for task in done:
            task.result()
        self._sending -= done

    async def _send_part(self, part_number: int, part: bytes, on_sent: Callable[[int], object]) -> None:
        try:
            with _translated():
                response = await self._archive.client.upload_part(
                    Bucket=self._archive.bucket,
                    Key=self._archive.key,
                    UploadId=self._upload_id or "",
                    PartNumber=part_number,
                    Body=part,
                )
            on_sent(len(part))
            self._parts.append({"ETag": response["ETag"], "PartNumber": part_number})
        finally:
            self._slots.release()


def size_of_part(part_number: int, base: int) -> int:
    """Double every 2,000 parts: small homes stay cheap, and a base of 8 MiB still allows 484 GiB."""
    return base << ((part_number - 1) // _PARTS_PER_SIZE)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError, HttpError, TimeoutError, ConnectionError) as error:
        raise unreachable(str(error) or type(error).__name__) from error


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")
