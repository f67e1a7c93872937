"""`python -m tests.parts`: every test, in three parts side by side, because tests mostly wait for servers."""

import asyncio
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

# Each has its own servers and directories; they take about the same time. What starts containers is in the
# part with the browser: Chromium fails its requests whenever a network interface comes or goes. What uses
# Hypothesis comes last: its garbage takes so long to collect that Temporal would take a workflow for stuck.
PARTS = {
    "crashes": ["replay", "workflows", "chaos", "gameday", "front_door", "bare_machine"],
    "services": ["adversarial", "integration", "cli", "api", "proxy", "unit", "model"],
    "surface": ["e2e", "contracts", "images", "deploy", "docker"],
}
# The part that all of the domain is tested by: only there coverage is measured, since that slows down.
MEASURED = "services"
TESTS = Path(__file__).parent
# What tests/conftest.py says at the end of each part.
SKIPPED = re.compile(r"(\d+) skipped: (.*)")


async def run_part(name: str, directories: list[str], place: str, skips: Counter[str]) -> int:
    """Return the exit status; pass on what it prints line by line, and count what was skipped."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *(("coverage", "run", "-m") if name == MEASURED else ()), "pytest"),
        f"--basetemp={place}/{name}",
        *("-o", f"cache_dir={place}/{name}-cache"),
        *(str((TESTS / each).relative_to(TESTS.parent)) for each in directories),
        cwd=TESTS.parent,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    async for raw in process.stdout:
        line = raw.decode(errors="replace")
        if skipped := SKIPPED.match(line):
            skips[skipped[2]] += int(skipped[1])
        sys.stdout.write(f"{name} {line}")
        sys.stdout.flush()
    return await process.wait()


async def main() -> int:
    # A shell that starts us in the background has us ignore it, and tests of Ctrl-C would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    skips: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="codehub-tests-") as place:
        runs = (run_part(name, each, place, skips) for name, each in PARTS.items())
        statuses = await asyncio.gather(*runs)
    for reason, count in sorted(skips.items()):
        sys.stdout.write(f"{count} skipped: {reason}\n")
    # One that was ended by a signal has a negative status.
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
