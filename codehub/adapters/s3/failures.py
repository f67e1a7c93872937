"""Every failure of the store in the control plane's words: only a real 404 is an absence."""

import contextlib
from collections.abc import Iterator

from aiohttp import ClientError as HttpError
from botocore.exceptions import BotoCoreError, ClientError

from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

MISSING_OBJECT = frozenset({"NoSuchKey", "404", "NotFound"})
MISSING_UPLOAD = frozenset({"NoSuchUpload", "404", "NotFound"})
BUCKET_IS_THERE = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})
MESSAGE_LENGTH = 300


def code_of(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError, HttpError, TimeoutError, OSError) as error:
        said = " ".join(str(error).split())[:MESSAGE_LENGTH] or type(error).__name__
        raise Transient(
            ErrorReason.UNREACHABLE,
            f"The archive store gave no good answer ({said}); check it, its bucket and its credentials.",
        ) from error
