"""Parse the request of one job: a single JSON document, so that no secret is on a command line."""

import json
import re
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from storage_job.errors import InvalidRequest

SUFFIXES = (".tar.zst", ".tar.gz")
MIB = 1024 * 1024
# S3 refuses smaller parts, except for the last.
MIN_PART_SIZE = 5 * MIB
MAX_PART_SIZE = 512 * MIB
MAX_COMPRESSION_LEVEL = 19
MAX_PARTS_IN_FLIGHT = 64
MAX_UID = 2**32 - 2
_AMBIGUOUS = {"", ".", ".."}


class Operation(StrEnum):
    ARCHIVE = "archive"
    RESTORE = "restore"
    CREATE_EMPTY = "create-empty"
    VERIFY = "verify"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    operation: Operation
    archive_url: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    data_dir: Path = Path("/data")
    endpoint_url: str | None = None
    region: str = "us-east-1"
    compression_level: int = 3
    part_size: int = 8 * MIB
    parts_in_flight: int = 4
    max_bytes: int | None = None
    # Recorded by the control plane when the archive was committed; the meta must agree.
    expected_size: int | None = None
    expected_sha256: str | None = None
    # Recorded as the user and group of every file in a new archive, instead of the real ones.
    archived_owner: int | None = None

    def __post_init__(self) -> None:
        _check(self.access_key != "" and self.secret_key != "", "access_key and secret_key must not be empty")
        _check(
            self.bucket != "" and self.key != "", "archive_url must look like s3://bucket/path/home.tar.zst"
        )
        _check(self.key.endswith(SUFFIXES), "archive_url must end in .tar.zst or .tar.gz")
        # S3 clients interpret such keys differently: one might not find what another has written.
        ambiguous = not self.key.isprintable() or _AMBIGUOUS & {*self.key.split("/")}
        _check(
            not ambiguous,
            "archive_url must not contain empty segments, dot segments or control characters",
        )
        _check(_is_address(self.endpoint_url), "endpoint_url must look like https://host or http://host:port")
        writes = self.operation in (Operation.ARCHIVE, Operation.CREATE_EMPTY)
        _check(
            not writes or self.key.endswith(".tar.zst"), "archive_url of a new archive must end in .tar.zst"
        )
        _check(self.data_dir.is_absolute(), "data_dir must be an absolute path")
        _check(1 <= self.compression_level <= MAX_COMPRESSION_LEVEL, "compression_level must be 1 to 19")
        _check(MIN_PART_SIZE <= self.part_size <= MAX_PART_SIZE, "part_size must be 5 MiB to 512 MiB")
        _check(1 <= self.parts_in_flight <= MAX_PARTS_IN_FLIGHT, "parts_in_flight must be 1 to 64")
        _check(self.max_bytes is None or self.max_bytes > 0, "max_bytes must be positive")
        owner = self.archived_owner
        _check(owner is None or 0 <= owner <= MAX_UID, f"archived_owner must be 0 to {MAX_UID}")
        self._check_expectations()

    def _check_expectations(self) -> None:
        given = self.expected_size is not None or self.expected_sha256 is not None
        restores = self.operation is Operation.RESTORE
        _check(restores or not given, "expected_size and expected_sha256 are only for a restore")
        _check(self.expected_size is None or self.expected_size >= 0, "expected_size must not be negative")
        is_digest = self.expected_sha256 is None or re.fullmatch(r"[0-9a-f]{64}", self.expected_sha256)
        _check(bool(is_digest), "expected_sha256 must be 64 lowercase hexadecimal digits")

    @property
    def bucket(self) -> str:
        parts = urlsplit(self.archive_url)
        return parts.netloc if parts.scheme == "s3" else ""

    @property
    def key(self) -> str:
        return urlsplit(self.archive_url).path.removeprefix("/")

    @property
    def suffix(self) -> str:
        return next(suffix for suffix in SUFFIXES if self.key.endswith(suffix))


def _is_address(url: str | None) -> bool:
    return url is None or re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", url) is not None


def _check(valid: bool, message: str) -> None:
    if not valid:
        raise InvalidRequest(f"The request is invalid: {message}.")


def parse_request(document: str, operation: str | None) -> JobRequest:
    """Parse a request; the operation comes from the document, the command line, or both if they agree."""
    try:
        values = json.loads(document)
    except ValueError as error:
        # The document contains credentials, so no message may quote it or the decoder's excerpt.
        raise InvalidRequest("The request is invalid: it is not a JSON document.") from error
    _check(isinstance(values, dict), "it is not a JSON object")
    named = {values.get("operation"), operation} - {None}
    _check(len(named) == 1, "name one operation: archive, restore, create-empty or verify")
    values["operation"] = named.pop()
    return JobRequest(**_typed(values))


NUMBERS = (
    "compression_level",
    "part_size",
    "parts_in_flight",
    "max_bytes",
    "expected_size",
    "archived_owner",
)


def _typed(values: dict[str, Any]) -> dict[str, Any]:
    known = {entry.name for entry in fields(JobRequest)}
    unknown = sorted(values.keys() - known)
    _check(not unknown, f"unknown fields: {', '.join(unknown)}")
    for name in ("archive_url", "access_key", "secret_key"):
        _check(isinstance(values.get(name), str), f"{name} is missing or not a string")
    for name in ("data_dir", "endpoint_url", "region", "expected_sha256"):
        _check(isinstance(values.get(name, ""), str | None), f"{name} must be a string")
    for name in NUMBERS:
        _check(type(values.get(name, 0)) in (int, type(None)), f"{name} must be a whole number")
    _check(values["operation"] in set(Operation), f"unknown operation {values['operation']!r}")
    # null means the default, so callers need not leave fields out.
    given = {name: value for name, value in values.items() if value is not None}
    given["operation"] = Operation(given["operation"])
    if "data_dir" in given:
        given["data_dir"] = Path(given["data_dir"])
    return given
