"""Measures directories in a separate process at low priority."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from codehub.adapters.local.sandbox import find_bubblewrap
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import Measurement

PROGRAM = Path(__file__).with_name("measure_disk.py")
# The program only prints after its deadline.
GRACE_SECONDS = 10.0


async def measure_directories(paths: Sequence[Path], seconds: float) -> Measurement:
    """Return the allocated space; raise Transient if it cannot be measured."""
    for command in _commands(paths, seconds):
        output = await _run(command, seconds + GRACE_SECONDS)
        if output:
            found = json.loads(output)
            return Measurement(int(found["used_bytes"]), complete=bool(found["complete"]))
    raise Transient(ErrorReason.UNREACHABLE, "The disk usage of a home cannot be measured.")


def _commands(paths: Sequence[Path], seconds: float) -> Iterator[list[str]]:
    program = [sys.executable, "-I", "-S", str(PROGRAM), str(seconds), *map(str, paths)]
    if os.geteuid() != 0 and (bubblewrap := find_bubblewrap()):
        # The files belong to this user, but directories with mode 000 would hide their content.
        yield [bubblewrap, "--unshare-user", "--cap-add", "CAP_DAC_READ_SEARCH", *READ_ONLY, "--", *program]
    yield program


READ_ONLY = ("--ro-bind", "/", "/", "--die-with-parent")


async def _run(command: Sequence[str], seconds: float) -> bytes:
    """Return the output; nothing if the program failed."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise Transient(ErrorReason.UNREACHABLE, "The disk of a home does not respond.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output if process.returncode == 0 else b""
