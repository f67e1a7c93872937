"""Build valid and malicious tar archives for tests."""

import io
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from storage_job.compression import new_compressor

Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", link: str = "") -> Member:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    info.size = len(content)
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    return info, content


def tar_of(members: Iterable[Member], tar_format: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tar_format) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zstd(content: bytes) -> bytes:
    compressor = new_compressor(level=1)
    return compressor.compress(content) + compressor.flush()


def tar_with_gnu_tar(directory: Path, *options: str) -> bytes:
    command = ("/usr/bin/env", "tar", "-C", str(directory), "-cf", "-", *options)
    return subprocess.run(command, check=True, capture_output=True).stdout


def with_checksum(header: bytes) -> bytes:
    """Return the header with the right checksum."""
    blank = header[:148] + b" " * 8 + header[156:512]
    return blank[:148] + b"%06o\0 " % sum(blank) + blank[156:]
