"""Run storage jobs in tests, in this process or as a program."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage_job.job import perform
from storage_job.progress import Outcome
from storage_job.request import parse_request
from testkit.waiting import DEADLINE_SECONDS
from tests.buckets import Bucket

KEY = "archives/workspace/operation/home.tar.zst"
META_KEY = KEY + ".meta"
REPOSITORY = Path(__file__).parents[1]


def request_for(bucket: Bucket, data_dir: Path, **overrides: object) -> dict[str, Any]:
    return {
        "archive_url": f"s3://{bucket.name}/{overrides.pop('key', KEY)}",
        "endpoint_url": bucket.server.endpoint_url,
        "access_key": bucket.server.access_key,
        "secret_key": bucket.server.secret_key,
        "data_dir": str(data_dir),
        **overrides,
    }


async def archive(bucket: Bucket, data_dir: Path, **overrides: object) -> Outcome:
    return await perform(parse_request(json.dumps(request_for(bucket, data_dir, **overrides)), "archive"))


async def restore(bucket: Bucket, data_dir: Path, **overrides: object) -> Outcome:
    return await perform(parse_request(json.dumps(request_for(bucket, data_dir, **overrides)), "restore"))


async def verify(bucket: Bucket, data_dir: Path, **overrides: object) -> Outcome:
    return await perform(parse_request(json.dumps(request_for(bucket, data_dir, **overrides)), "verify"))


async def store_archive(bucket: Bucket, tar_zst: bytes, key: str = KEY) -> None:
    """Store an archive with its meta, without a job."""
    await bucket.write(key, tar_zst)
    await bucket.write(key + ".meta", f"sha256:{hashlib.sha256(tar_zst).hexdigest()}\n".encode())


@dataclass(frozen=True)
class JobRun:
    code: int
    events: list[dict[str, Any]]
    stderr: str


class JobProcess:
    """A job that runs as a program, as in production."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._events: list[dict[str, Any]] = []

    @classmethod
    async def start(
        cls,
        operation: str,
        request: dict[str, Any],
        path: str | None = None,
        *,
        attended: bool = False,
        options: Sequence[str] = (),
    ) -> "JobProcess":
        """Start a job; an attended one gets its request as one line and keeps its stdin open."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "storage_job",
            operation,
            *(["--attended"] if attended else []),
            *options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=REPOSITORY,
            env={**os.environ, "PATH": path or os.environ["PATH"]},
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        if not attended:
            process.stdin.close()
        return cls(process)

    async def next_event(self) -> dict[str, Any] | None:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), DEADLINE_SECONDS)
        if not line:
            return None
        self._events.append(json.loads(line))
        return self._events[-1]

    async def finish(self) -> JobRun:
        while await self.next_event() is not None:
            pass
        assert self.process.stderr is not None
        stderr = (await self.process.stderr.read()).decode()
        return JobRun(await self.process.wait(), self._events, stderr)


async def run_job(operation: str, request: dict[str, Any]) -> JobRun:
    return await (await JobProcess.start(operation, request)).finish()


def path_with_fake(directory: Path, program: str, script: str) -> str:
    """Return a PATH on which `program` is this shell script."""
    directory.mkdir(exist_ok=True)
    fake = directory / program
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"
