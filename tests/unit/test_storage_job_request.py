"""Requests, metas and part sizes of the storage job."""

import json
from pathlib import Path
from typing import Any

import pytest

from storage_job.errors import CorruptedArchive, InvalidRequest
from storage_job.meta import ArchiveMeta, parse_meta
from storage_job.request import MIB, JobRequest, Operation, parse_request
from storage_job.upload import MAX_PARTS, size_of_part

VALID = {
    "archive_url": "s3://bucket/archives/w/o/home.tar.zst",
    "access_key": "key",
    "secret_key": "the-secret",
}
DIGEST = "0123456789abcdef" * 4


def parse(values: dict[str, Any], operation: str | None = "archive") -> JobRequest:
    return parse_request(json.dumps(VALID | values), operation)


def test_a_short_request_gets_the_defaults() -> None:
    request = parse({"endpoint_url": None}, "restore")
    assert (request.operation, request.data_dir) == (Operation.RESTORE, Path("/data"))
    assert (request.bucket, request.key) == ("bucket", "archives/w/o/home.tar.zst")
    assert (request.part_size, request.parts_in_flight, request.compression_level) == (8 * MIB, 4, 3)


def test_the_operation_may_be_in_the_document() -> None:
    assert parse({"operation": "create-empty"}, None).operation is Operation.CREATE_EMPTY


def test_secrets_are_not_in_the_representation() -> None:
    assert "the-secret" not in repr(parse({}))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"operation": "restore"}, "name one operation"),
        ({"archive_url": "https://bucket/home.tar.zst"}, "s3://"),
        ({"archive_url": "s3:///home.tar.zst"}, "s3://"),
        ({"archive_url": "s3://bucket/home.zip"}, "end in"),
        ({"archive_url": "s3://bucket/home.tar.gz"}, "new archive must end in .tar.zst"),
        ({"archive_url": 5}, "archive_url"),
        ({"archive_url": "s3://bucket//home.tar.zst"}, "empty segments"),
        ({"archive_url": "s3://bucket/a//home.tar.zst"}, "empty segments"),
        ({"archive_url": "s3://bucket/a/../home.tar.zst"}, "empty segments"),
        ({"archive_url": "s3://bucket/a\0/home.tar.zst"}, "control characters"),
        ({"endpoint_url": "store.example.org"}, "endpoint_url"),
        ({"endpoint_url": "http://"}, "endpoint_url"),
        ({"endpoint_url": "http://a b"}, "endpoint_url"),
        ({"access_key": ""}, "access_key"),
        ({"secret_key": None}, "secret_key"),
        ({"data_dir": "relative"}, "absolute"),
        ({"data_dir": 5}, "data_dir"),
        ({"part_size": MIB}, "part_size"),
        ({"part_size": "8"}, "part_size"),
        ({"parts_in_flight": 0}, "parts_in_flight"),
        ({"parts_in_flight": True}, "parts_in_flight"),
        ({"compression_level": 30}, "compression_level"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"expected_sha256": DIGEST}, "only for a restore"),
        ({"expected_size": 0}, "only for a restore"),
        ({"typo": 1}, "unknown fields: typo"),
    ],
)
def test_invalid_requests_are_refused(values: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        parse(values)


@pytest.mark.parametrize(("document", "operation"), [("", "archive"), ("[]", "archive"), ("{}", None)])
def test_other_documents_are_refused(document: str, operation: str | None) -> None:
    with pytest.raises(InvalidRequest):
        parse_request(document, operation)


@pytest.mark.parametrize(
    "values",
    [
        {"expected_sha256": DIGEST.upper()},
        {"expected_sha256": ""},
        {"expected_sha256": 5},
        {"expected_size": -1},
        {"expected_size": "5"},
        {"expected_size": True},
    ],
)
def test_invalid_expectations_are_refused(values: dict[str, Any]) -> None:
    [name] = values
    with pytest.raises(InvalidRequest, match=name):
        parse(values, "restore")


def test_a_restore_may_expect_a_recorded_size_and_sha256() -> None:
    request = parse({"expected_sha256": DIGEST, "expected_size": 0}, "restore")
    assert (request.expected_sha256, request.expected_size) == (DIGEST, 0)


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="unknown operation"):
        parse({"operation": "destroy"}, None)


def test_a_meta_can_be_written_and_parsed() -> None:
    meta = ArchiveMeta(DIGEST, 5, 6, 7)
    assert parse_meta(meta.to_bytes()) == meta
    assert meta.to_bytes().splitlines()[0] == f"sha256:{DIGEST}".encode()


def test_older_and_newer_metas_are_understood() -> None:
    assert parse_meta(f"sha256:{DIGEST}".encode()) == ArchiveMeta(DIGEST)
    assert parse_meta(f"sha256:{DIGEST}\r\nfuture:x\nsize:-1\nsize:9\n".encode()) == ArchiveMeta(
        DIGEST, size=9
    )


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"size:5", b"sha256:abc", f"x\nsha256:{DIGEST}".encode(), b"\xff"]
)
def test_a_meta_without_a_digest_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptedArchive):
        parse_meta(content)


def test_ten_thousand_parts_suffice_for_a_huge_home() -> None:
    sizes = [size_of_part(number, 8 * MIB) for number in range(1, MAX_PARTS + 1)]
    assert sizes[0] == sizes[1999] == 8 * MIB
    assert sizes == sorted(sizes)
    assert sum(sizes) > 484 * 1024 * MIB
