"""`python -m benchmarks.lifecycle.s3_pipe upload|download`: the S3 end of a plain pipe."""

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

# The same as in the storage job.
PART_BYTES, PARTS_IN_FLIGHT, CHUNK_BYTES = 8 * 1024 * 1024, 4, 256 * 1024
TARGET = "BENCHMARK_TARGET"


async def upload(client: "S3Client", location: dict[str, str]) -> None:
    created = await client.create_multipart_upload(Bucket=location["bucket"], Key=location["key"])
    upload_id, slots = created["UploadId"], asyncio.Semaphore(PARTS_IN_FLIGHT)

    async def send(number: int, part: bytes) -> "CompletedPartTypeDef":
        try:
            response = await client.upload_part(
                Bucket=location["bucket"],
                Key=location["key"],
                UploadId=upload_id,
                PartNumber=number,
                Body=part,
            )
        finally:
            slots.release()
        return {"PartNumber": number, "ETag": response["ETag"]}

    sending: list[asyncio.Task[CompletedPartTypeDef]] = []
    await slots.acquire()
    while part := await asyncio.to_thread(sys.stdin.buffer.read, PART_BYTES):
        sending.append(asyncio.create_task(send(len(sending) + 1, part)))
        del part
        await slots.acquire()
    parts = await asyncio.gather(*sending)
    await client.complete_multipart_upload(
        Bucket=location["bucket"], Key=location["key"], UploadId=upload_id, MultipartUpload={"Parts": parts}
    )


async def download(client: "S3Client", location: dict[str, str]) -> None:
    response = await client.get_object(Bucket=location["bucket"], Key=location["key"])
    body = response["Body"]
    async with body:
        while chunk := await body.read(CHUNK_BYTES):
            await asyncio.to_thread(sys.stdout.buffer.write, chunk)
    sys.stdout.buffer.flush()


async def main(operation: str, target: dict[str, Any]) -> None:
    # A minimal client, so that it is hard to beat.
    config = AioConfig(
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"},
    )
    async with get_session().create_client("s3", config=config, **target["client"]) as client:
        await {"upload": upload, "download": download}[operation](client, target["location"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(os.environ[TARGET])))
