"""A multipart upload of a stream of unknown length, with a bounded number of parts in memory."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from storage_job.errors import failed
from storage_job.s3 import ArchiveObject, translated

if TYPE_CHECKING:
    from types_aiobotocore_s3.type_defs import CompletedPartTypeDef

MAX_PARTS = 10_000
_PARTS_PER_SIZE = 2_000

# Returns the next bytes, at most as many as asked for, and none at the end.
Reader = Callable[[int], Awaitable[bytes]]


def size_of_part(part_number: int, base: int) -> int:
    """Double every 2,000 parts: small homes stay cheap, and 8 MiB at first still allows for 484 GiB."""
    return base << ((part_number - 1) // _PARTS_PER_SIZE)


class MultipartUpload:
    """Use as `async with`: it aborts unless `complete` was reached."""

    def __init__(self, archive: ArchiveObject, part_size: int, parts_in_flight: int) -> None:
        self._archive = archive
        self._part_size = part_size
        self._slots = asyncio.Semaphore(parts_in_flight)
        self._sending: set[asyncio.Task[None]] = set()
        self._parts: list[CompletedPartTypeDef] = []
        self._upload_id: str | None = None

    async def __aenter__(self) -> "MultipartUpload":
        with translated():
            answer = await self._archive.client.create_multipart_upload(
                Bucket=self._archive.bucket, Key=self._archive.key, ContentType="application/zstd"
            )
        self._upload_id = answer["UploadId"]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        if self._upload_id is not None:
            # The failure that led here matters more; the next run aborts what is left.
            with contextlib.suppress(Exception):
                await self._archive.abort(self._upload_id)

    async def send(self, read: Reader, sent: Callable[[int], object]) -> None:
        """Send everything that `read` returns; `sent` learns the size of each part that has arrived."""
        for part_number in range(1, MAX_PARTS + 1):
            await self._slots.acquire()
            self._collect()
            part = await read(size_of_part(part_number, self._part_size))
            if not part and part_number > 1:
                break
            self._sending.add(asyncio.create_task(self._send_part(part_number, part, sent)))
            del part  # The task owns it now, so that it is freed as soon as it has been sent.
        else:
            raise failed("The archive has more than 10,000 parts; raise part_size and try again.")
        await asyncio.gather(*self._sending)

    async def complete(self) -> None:
        parts = sorted(self._parts, key=lambda part: part["PartNumber"])
        with translated():
            await self._archive.client.complete_multipart_upload(
                Bucket=self._archive.bucket,
                Key=self._archive.key,
                UploadId=self._upload_id or "",
                MultipartUpload={"Parts": parts},
            )
        self._upload_id = None

    def _collect(self) -> None:
        """Forget the parts that have arrived; raise what went wrong with one that did not."""
        done = {task for task in self._sending if task.done()}
        for task in done:
            task.result()
        self._sending -= done

    async def _send_part(self, part_number: int, part: bytes, sent: Callable[[int], object]) -> None:
        try:
            with translated():
                answer = await self._archive.client.upload_part(
                    Bucket=self._archive.bucket,
                    Key=self._archive.key,
                    UploadId=self._upload_id or "",
                    PartNumber=part_number,
                    Body=part,
                )
            sent(len(part))
            self._parts.append({"ETag": answer["ETag"], "PartNumber": part_number})
        finally:
            self._slots.release()
