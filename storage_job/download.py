"""A committed archive and its meta, read out of S3 by a client that starts at once."""

import contextlib
import os
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.store import S3Store

from storage_job import meta
from storage_job.errors import JobError, Reason, unreachable
from storage_job.request import JobRequest

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ClientConfig, RetryConfig, S3Config

CHUNK_BYTES = 1024 * 1024
_RETRIES: "RetryConfig" = {"max_retries": 2, "retry_timeout": timedelta(minutes=3)}
# Only this code is about the object. A missing bucket is a 404 too, and so may be a proxy's own page.
_NO_SUCH_KEY = re.compile(r"status code: 404\b[^<]*(?:<(?!Code>)[^<]*)*<Code>NoSuchKey</Code>")
_DEBUGGING = "\n\nDebug source:"


@dataclass(frozen=True)
class Download:
    size: int
    chunks: AsyncIterator[bytes]


class StoredArchive:
    """The archive named by a request, and the meta that commits it; for reading only."""

    def __init__(self, request: JobRequest) -> None:
        self._key = request.key
        with _translated():
            self._store = _open(request)

    async def read_meta(self) -> bytes:
        answer = await self._get(self._key + meta.SUFFIX, f"The committed archive {self._key}")
        content = b""
        with _translated():
            async for chunk in answer.stream(meta.LIMIT_BYTES):
                content += bytes(chunk)
                if len(content) >= meta.LIMIT_BYTES:
                    break
        return content[: meta.LIMIT_BYTES]

    async def download(self) -> Download:
        answer = await self._get(self._key, f"The archive {self._key}")
        return Download(answer.meta["size"], _chunks(answer))

    async def _get(self, key: str, what: str) -> "GetResult":
        # A GET and not a HEAD: only its answer tells a missing object from a missing bucket.
        with _translated():
            try:
                return await obstore.get_async(self._store, key)
            except FileNotFoundError as error:
                if not _NO_SUCH_KEY.search(str(error)):
                    raise
                advice = "restore an older archive or start with an empty home"
                message = f"{what} is not in the archive store; {advice}."
                raise JobError(Reason.DATA_LOST, message) from error


async def _chunks(answer: "GetResult") -> AsyncIterator[bytes]:
    with _translated():
        async for chunk in answer.stream(CHUNK_BYTES):
            yield chunk


def _open(request: JobRequest) -> S3Store:
    config: S3Config = {
        "access_key_id": request.access_key,
        "secret_access_key": request.secret_key,
        "region": request.region,
        # The certificate of AWS does not cover buckets with a dot.
        "virtual_hosted_style_request": not request.endpoint_url and "." not in request.bucket,
    }
    if request.endpoint_url:
        config["endpoint"] = request.endpoint_url
    options = _client_options()
    with _without_settings_of_others():
        return S3Store(request.bucket, config=config, client_options=options, retry_config=_RETRIES)


def _client_options() -> "ClientConfig":
    options: ClientConfig = {
        "allow_http": True,
        "connect_timeout": timedelta(seconds=10),
        "read_timeout": timedelta(seconds=60),
        # For all of a transfer, which may take long; one that stalls ends by the timeout above.
        "timeout": timedelta(days=30),
    }
    if bundle := os.environ.get("AWS_CA_BUNDLE"):
        options["root_certificate"] = Path(bundle).read_bytes()
    return options


@contextlib.contextmanager
def _without_settings_of_others() -> Iterator[None]:
    """Hide AWS_ variables: the client would prefer some, such as the endpoint, to what the request says."""
    hidden = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    # Missing objects are an OSError, unusable addresses a ValueError.
    except (obstore.exceptions.BaseError, OSError, ValueError) as error:
        raise unreachable(str(error).partition(_DEBUGGING)[0]) from error
