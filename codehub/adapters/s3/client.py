"""Opens S3 clients and translates their errors."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import aioboto3
from aiobotocore.config import AioConfig
from aiohttp import ClientError as HttpError
from botocore.exceptions import BotoCoreError, ClientError

from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import ArchiveStore

if TYPE_CHECKING:
    from types_aiobotocore_s3.client import S3Client

CONNECT_SECONDS = 3
READ_SECONDS = 5
# Temporal retries steps. The second attempt is only for a connection that the server has closed.
ATTEMPTS = 2
MISSING_OBJECT = frozenset({"NoSuchKey", "404", "NotFound"})
MISSING_UPLOAD = frozenset({"NoSuchUpload", "404", "NotFound"})
EXISTING_BUCKET = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})
MESSAGE_LENGTH = 300
# Clients of one session share its parsed service models, which take long to load.
_session = aioboto3.Session()


def open_client(
    store: ArchiveStore, *, read_seconds: float = READ_SECONDS, attempts: int = ATTEMPTS
) -> "AbstractAsyncContextManager[S3Client]":
    config = AioConfig(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
        retries={"mode": "standard", "total_max_attempts": attempts},
        # Many S3 servers do not support checksum trailers.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if store.endpoint_url else "auto"},
    )
    return _session.client(
        "s3",
        endpoint_url=store.endpoint_url,
        region_name=store.region,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        config=config,
    )


def error_code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Transient(UNREACHABLE) for every error: only a 404 means that an object is missing."""
    try:
        yield
    except (BotoCoreError, ClientError, HttpError, TimeoutError, OSError) as error:
        reason = " ".join(str(error).split())[:MESSAGE_LENGTH] or type(error).__name__
        raise Transient(
            ErrorReason.UNREACHABLE,
            f"The archive store cannot be used ({reason}); check it, its bucket and its credentials.",
        ) from error
