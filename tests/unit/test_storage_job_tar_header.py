"""Checksums of tar headers are exact, and a job imports no client that it does not need."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_job.errors import CorruptedArchive
from storage_job.tar.headers import BLOCK, parse_header
from tests.tars import member, tar_of, with_checksum

GOOD = tar_of([member("file")])[:BLOCK]
# Owner names and the padding may contain anything.
UNCHECKED = [*range(265, 329), *range(500, BLOCK)]
HEAVY_CLIENTS = {"aiobotocore", "aiohttp", "boto3", "botocore"}


def filled(content: bytes) -> bytes:
    header = bytearray(GOOD)
    for position, value in zip(UNCHECKED, content, strict=True):
        header[position] = value
    return bytes(header)


@given(st.binary(min_size=len(UNCHECKED), max_size=len(UNCHECKED)))
def test_every_correct_checksum_is_accepted(content: bytes) -> None:
    assert parse_header(with_checksum(filled(content))).name == b"file"


def test_the_largest_sums_are_exact() -> None:
    # More than 16 bits or the modulus of Adler-32 could hold.
    header = bytearray(b"\xff" * BLOCK)
    header[124:136], header[257:265] = b"00000000000\0", b"ustar\x0000"
    assert parse_header(with_checksum(bytes(header))).size == 0


@given(st.sampled_from(UNCHECKED), st.integers(1, 255))
def test_every_changed_byte_is_noticed(position: int, change: int) -> None:
    header = bytearray(GOOD)
    header[position] ^= change
    with pytest.raises(CorruptedArchive, match="checksum"):
        parse_header(bytes(header))


def test_a_job_starts_without_importing_the_upload_client() -> None:
    script = "import sys, storage_job.__main__; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "obstore" in run.stdout.split()
    assert HEAVY_CLIENTS.isdisjoint(run.stdout.split())
