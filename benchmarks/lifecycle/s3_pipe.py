"""The S3 end of a plain pipe: `python -m benchmarks.lifecycle.s3_pipe upload|download`."""

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client
    from types_aiobotocore_s3.type_defs import CompletedPartTypeDef

# What the storage job uses.
PART_BYTES, PARTS_IN_FLIGHT, CHUNK_BYTES = 8 * 1024 * 1024, 4, 256 * 1024
TARGET = "BENCHMARK_TARGET"


async def upload(client: "S3Client", place: dict[str, str]) -> None:
    created = await client.create_multipart_upload(Bucket=place["bucket"], Key=place["key"])
    upload_id, slots = created["UploadId"], asyncio.Semaphore(PARTS_IN_FLIGHT)

    async def send(number: int, part: bytes) -> "CompletedPartTypeDef":
        try:
            answer = await client.upload_part(
                Bucket=place["bucket"], Key=place["key"], UploadId=upload_id, PartNumber=number, Body=part
            )
        finally:
            slots.release()
        return {"PartNumber": number, "ETag": answer["ETag"]}

    sending: list[asyncio.Task[CompletedPartTypeDef]] = []
    await slots.acquire()
    while part := await asyncio.to_thread(sys.stdin.buffer.read, PART_BYTES):
        sending.append(asyncio.create_task(send(len(sending) + 1, part)))
        del part
        await slots.acquire()
    parts = await asyncio.gather(*sending)
    await client.complete_multipart_upload(
        Bucket=place["bucket"], Key=place["key"], UploadId=upload_id, MultipartUpload={"Parts": parts}
    )


async def download(client: "S3Client", place: dict[str, str]) -> None:
    answer = await client.get_object(Bucket=place["bucket"], Key=place["key"])
    body = answer["Body"]
    async with body:
        while chunk := await body.read(CHUNK_BYTES):
            await asyncio.to_thread(sys.stdout.buffer.write, chunk)
    sys.stdout.buffer.flush()


async def main(operation: str, target: dict[str, Any]) -> None:
    # As little as a client can do, so that it is hard to beat.
    config = AioConfig(
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"},
    )
    async with get_session().create_client("s3", config=config, **target["client"]) as client:
        await {"upload": upload, "download": download}[operation](client, target["place"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(os.environ[TARGET])))
