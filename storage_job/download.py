"""The archive as a stream of chunks out of S3."""

import contextlib
from collections.abc import AsyncIterator

from botocore.exceptions import ClientError

from storage_job.errors import JobError, Reason
from storage_job.s3 import ArchiveObject, is_missing, translated

CHUNK_BYTES = 256 * 1024


class Download:
    def __init__(self, size: int, chunks: AsyncIterator[bytes]) -> None:
        self.size = size
        self.chunks = chunks


def archive_missing(what: str) -> JobError:
    return JobError(
        Reason.DATA_LOST,
        f"{what} is not in the archive store; restore an older archive or start with an empty home.",
    )


@contextlib.asynccontextmanager
async def open_download(archive: ArchiveObject) -> AsyncIterator[Download]:
    with translated():
        try:
            answer = await archive.client.get_object(Bucket=archive.bucket, Key=archive.key)
        except ClientError as error:
            if is_missing(error):
                raise archive_missing(f"The archive {archive.key}") from error
            raise
    body = answer["Body"]
    async with body:

        async def chunks() -> AsyncIterator[bytes]:
            while True:
                with translated():
                    chunk = await body.read(CHUNK_BYTES)
                if not chunk:
                    return
                yield chunk

        yield Download(answer["ContentLength"], chunks())
