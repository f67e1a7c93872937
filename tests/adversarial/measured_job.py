"""Run a job as a program, and measure the memory of its largest process."""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.buckets import Bucket
from tests.storage_jobs import REPOSITORY, request_for

_SCRIPT = """
import resource, subprocess, sys
code = subprocess.call([sys.executable, "-m", "storage_job", *sys.argv[1:]])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


@dataclass(frozen=True)
class MeasuredJob:
    code: int
    last: dict[str, Any]
    peak_bytes: int


async def measured_job(bucket: Bucket, operation: str, volume: Path, **overrides: object) -> MeasuredJob:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _SCRIPT, operation),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
    )
    output, _ = await process.communicate(json.dumps(request_for(bucket, volume, **overrides)).encode())
    *_, last, peak = output.decode().splitlines()
    assert process.returncode is not None
    return MeasuredJob(process.returncode, json.loads(last), int(peak) * 1024)
