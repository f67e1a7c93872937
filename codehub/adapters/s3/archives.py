"""The archives in an S3 bucket: observe, list and remove them."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Self

from botocore.exceptions import ClientError

from codehub.adapters.s3.client import (
    EXISTING_BUCKET,
    MISSING_OBJECT,
    MISSING_UPLOAD,
    error_code,
    open_client,
    translate_errors,
)
from codehub.domain.conditions import ArchiveFact
from codehub.domain.failures import Permanent
from codehub.domain.naming import ARCHIVE_ROOT, meta_key
from codehub.domain.states import ErrorReason
from codehub.ports import ArchiveObject, ArchiveStore, StoredArchive

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client
    from types_aiobotocore_s3.literals import BucketLocationConstraintType

PAGE_SIZE = 1000
META_LIMIT_BYTES = 64 * 1024
DEFAULT_REGION = "us-east-1"
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")


class S3Archives:
    """Archives behind one S3 client; `open` creates and closes it."""

    def __init__(self, client: "S3Client", store: ArchiveStore) -> None:
        self._client = client
        self._bucket = store.bucket
        self._region = store.region

    @classmethod
    @asynccontextmanager
    async def open(cls, store: ArchiveStore) -> AsyncIterator[Self]:
        async with open_client(store) as client:
            yield cls(client, store)

    async def observe(self, key: str | None) -> ArchiveFact:
        with translate_errors():
            if key is not None:
                sizes = await asyncio.gather(self._size(key), self._size(meta_key(key)))
                if None not in sizes:
                    return ArchiveFact.PRESENT
            await self._check_bucket()
        return ArchiveFact.ABSENT

    async def read_meta(self, key: str) -> StoredArchive | None:
        with translate_errors():
            size, content = await asyncio.gather(self._size(key), self._read(meta_key(key)))
            if size is None or content is None:
                await self._check_bucket()
                return None
        first_line = content.decode("ascii", "replace").partition("\n")[0].strip()
        digest = _SHA256.fullmatch(first_line)
        if digest is None:
            raise Permanent(
                ErrorReason.ARCHIVE_CORRUPTED, f"The meta of {key} does not start with a sha256 line."
            )
        return StoredArchive(key, size, digest[1])

    async def list_all(self) -> AsyncIterator[ArchiveObject]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=ARCHIVE_ROOT, PaginationConfig={"PageSize": PAGE_SIZE}
        )
        iterator = aiter(pages)
        while True:
            with translate_errors():
                page = await anext(iterator, None)
            if page is None:
                return
            for entry in page.get("Contents", []):
                yield ArchiveObject(entry["Key"], entry["Size"], entry["LastModified"])

    async def remove(self, key: str) -> None:
        with translate_errors():
            for each in (meta_key(key), key):
                await self._client.delete_object(Bucket=self._bucket, Key=each)

    async def abort_stale_uploads(self, older_than: datetime) -> int:
        with translate_errors():
            stale = [
                (upload["Key"], upload["UploadId"])
                async for page in self._client.get_paginator("list_multipart_uploads").paginate(
                    Bucket=self._bucket, Prefix=ARCHIVE_ROOT
                )
                for upload in page.get("Uploads", [])
                if upload["Initiated"] < older_than
            ]
            for key, upload_id in stale:
                await self._abort(key, upload_id)
        return len(stale)

    async def ensure_bucket(self) -> None:
        """Create the bucket if it does not exist. Only for the first start."""
        with translate_errors():
            try:
                await self._create_bucket()
            except ClientError as error:
                if error_code(error) not in EXISTING_BUCKET:
                    raise

    async def _create_bucket(self) -> None:
        if self._region == DEFAULT_REGION:
            await self._client.create_bucket(Bucket=self._bucket)
            return
        region: BucketLocationConstraintType = self._region  # type: ignore[assignment]
        location = {"LocationConstraint": region}
        await self._client.create_bucket(Bucket=self._bucket, CreateBucketConfiguration=location)  # type: ignore[arg-type]

    async def _check_bucket(self) -> None:
        """Raise if the bucket is missing: a HEAD of an object returns 404 for that too."""
        await self._client.head_bucket(Bucket=self._bucket)

    async def _size(self, key: str) -> int | None:
        try:
            return (await self._client.head_object(Bucket=self._bucket, Key=key))["ContentLength"]
        except ClientError as error:
            if error_code(error) in MISSING_OBJECT:
                return None
            raise

    async def _read(self, key: str) -> bytes | None:
        try:
            response = await self._client.get_object(Bucket=self._bucket, Key=key)
        except ClientError as error:
            if error_code(error) in MISSING_OBJECT:
                return None
            raise
        body = response["Body"]
        async with body:
            # A read with a limit could return only a part, so read all of it or nothing.
            return await body.read() if response["ContentLength"] <= META_LIMIT_BYTES else b""

    async def _abort(self, key: str, upload_id: str) -> None:
        try:
            await self._client.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=upload_id)
        except ClientError as error:
            if error_code(error) not in MISSING_UPLOAD:
                raise
