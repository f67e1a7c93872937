"""Checksums of tar headers are exact, and what a restore need not import it does not."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_job.errors import CorruptedArchive
from storage_job.tar.headers import BLOCK, parse_header
from tests.tars import member, tar_of, with_checksum

GOOD = tar_of([member("file")])[:BLOCK]
# Owner names and the padding: no rule is about their content.
FREE = [*range(265, 329), *range(500, BLOCK)]
HEAVY_CLIENTS = {"aiobotocore", "aiohttp", "boto3", "botocore"}


def filled(content: bytes) -> bytes:
    header = bytearray(GOOD)
    for place, value in zip(FREE, content, strict=True):
        header[place] = value
    return bytes(header)


@given(st.binary(min_size=len(FREE), max_size=len(FREE)))
def test_every_right_checksum_is_accepted(content: bytes) -> None:
    assert parse_header(with_checksum(filled(content))).name == b"file"


def test_the_largest_sums_are_exact() -> None:
    # Past what 16 bits or the modulus of Adler-32 could hold.
    header = bytearray(b"\xff" * BLOCK)
    header[124:136], header[257:265] = b"00000000000\0", b"ustar\x0000"
    assert parse_header(with_checksum(bytes(header))).size == 0


@given(st.sampled_from(FREE), st.integers(1, 255))
def test_every_changed_byte_is_noticed(place: int, change: int) -> None:
    header = bytearray(GOOD)
    header[place] ^= change
    with pytest.raises(CorruptedArchive, match="checksum"):
        parse_header(bytes(header))


def test_a_job_starts_without_the_client_that_only_uploads_need() -> None:
    script = "import sys, storage_job.__main__; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "obstore" in run.stdout.split()
    assert HEAVY_CLIENTS.isdisjoint(run.stdout.split())
