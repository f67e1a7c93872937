"""Read a committed archive and its meta from S3, with a client that starts fast."""

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
# Only this code is about the object. A missing bucket or a page of a proxy may be a 404, too.
_NO_SUCH_KEY = re.compile(r"status code: 404\b[^<]*(?:<(?!Code>)[^<]*)*<Code>NoSuchKey</Code>")
_DEBUG_OUTPUT = "\n\nDebug source:"


@dataclass(frozen=True)
class Download:
    size: int
    chunks: AsyncIterator[bytes]


class StoredArchive:
    """The archive named by a request, and the meta that commits it, for reading."""

    def __init__(self, request: JobRequest) -> None:
        self._key = request.key
        with _translated():
            self._store = _open_store(request)

    async def read_meta(self) -> bytes:
        response = await self._get(self._key + meta.SUFFIX, f"The committed archive {self._key}")
        content = b""
        with _translated():
            async for chunk in response.stream(meta.LIMIT_BYTES):
                content += bytes(chunk)
                if len(content) >= meta.LIMIT_BYTES:
                    break
        return content[: meta.LIMIT_BYTES]

    async def download(self) -> Download:
        response = await self._get(self._key, f"The archive {self._key}")
        return Download(response.meta["size"], _chunks(response))

    async def _get(self, key: str, what: str) -> "GetResult":
        # A GET, not a HEAD: only its response tells a missing object from a missing bucket.
        with _translated():
            try:
                return await obstore.get_async(self._store, key)
            except FileNotFoundError as error:
                if not _NO_SUCH_KEY.search(str(error)):
                    raise
                advice = "Restore an older archive or start with an empty home."
                message = f"{what} is not in the archive store. {advice}"
                raise JobError(Reason.DATA_LOST, message) from error


async def _chunks(response: "GetResult") -> AsyncIterator[bytes]:
    with _translated():
        async for chunk in response.stream(CHUNK_BYTES):
            yield chunk


def _open_store(request: JobRequest) -> S3Store:
    config: S3Config = {
        "access_key_id": request.access_key,
        "secret_access_key": request.secret_key,
        "region": request.region,
        # The wildcard certificate of AWS does not cover bucket names with a dot.
        "virtual_hosted_style_request": not request.endpoint_url and "." not in request.bucket,
    }
    if request.endpoint_url:
        config["endpoint"] = request.endpoint_url
    options = _client_options()
    with _aws_variables_hidden():
        return S3Store(request.bucket, config=config, client_options=options, retry_config=_RETRIES)


def _client_options() -> "ClientConfig":
    options: ClientConfig = {
        "allow_http": True,
        "connect_timeout": timedelta(seconds=10),
        "read_timeout": timedelta(seconds=60),
        # Limits a whole transfer, which may take long; read_timeout ends one that stalls.
        "timeout": timedelta(days=30),
    }
    if bundle := os.environ.get("AWS_CA_BUNDLE"):
        options["root_certificate"] = Path(bundle).read_bytes()
    return options


@contextlib.contextmanager
def _aws_variables_hidden() -> Iterator[None]:
    """Hide AWS_ variables: some of them, such as the endpoint, would override the request."""
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
    # Missing objects raise OSError, invalid addresses ValueError.
    except (obstore.exceptions.BaseError, OSError, ValueError) as error:
        raise unreachable(str(error).partition(_DEBUG_OUTPUT)[0]) from error
