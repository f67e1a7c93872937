"""The plain pipe that the storage job is compared with: without hash, scan and staging."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.lifecycle.s3_pipe import TARGET
from codehub.ports import ArchiveStore

S3_PIPE = (sys.executable, "-m", "benchmarks.lifecycle.s3_pipe")


@dataclass(frozen=True)
class PlainPipe:
    store: ArchiveStore

    def archive(self, home: Path, key: str) -> None:
        """Run `tar | zstd -3 -T0 | upload`."""
        commands = (
            ("tar", "-c", "-C", str(home), "."),
            ("zstd", "-3", "-T0", "-q", "-c"),
            (*S3_PIPE, "upload"),
        )
        _run(commands, self._environment(key))

    def restore(self, home: Path, key: str) -> None:
        """Run `download | zstd -d | tar -x`."""
        commands = ((*S3_PIPE, "download"), ("zstd", "-d", "-q", "-c"), ("tar", "-x", "-C", str(home)))
        _run(commands, self._environment(key))

    def _environment(self, key: str) -> dict[str, str]:
        client = {
            "endpoint_url": self.store.endpoint_url,
            "region_name": self.store.region,
            "aws_access_key_id": self.store.access_key,
            "aws_secret_access_key": self.store.secret_key,
        }
        target = {"client": client, "location": {"bucket": self.store.bucket, "key": key}}
        return {**os.environ, TARGET: json.dumps(target)}


def _run(commands: Sequence[Sequence[str]], environment: dict[str, str]) -> None:
    processes: list[subprocess.Popen[bytes]] = []
    for command in commands:
        source = processes[-1].stdout if processes else subprocess.DEVNULL
        last = command is commands[-1]
        output = None if last else subprocess.PIPE
        processes.append(subprocess.Popen(command, stdin=source, stdout=output, env=environment))  # noqa: S603
        if processes[:-1] and processes[-2].stdout:
            # The next process has it; a second descriptor here would keep the pipe open.
            processes[-2].stdout.close()
    statuses = [process.wait() for process in processes]
    if any(statuses):
        raise RuntimeError(f"the plain pipe failed: {statuses}")
