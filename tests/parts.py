"""`python -m tests.parts`: every test, in three parts side by side, because tests mostly wait for servers."""

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

# Each has its own servers and directories; they take about the same time. What starts containers is in the
# part with the browser: Chromium fails its requests whenever a network interface comes or goes. What uses
# Hypothesis comes last: its garbage takes so long to collect that Temporal would take a workflow for stuck.
PARTS = {
    "crashes": ["replay", "workflows", "chaos", "gameday", "front_door"],
    "services": ["adversarial", "integration", "cli", "api", "proxy", "unit", "model"],
    "surface": ["e2e", "contracts", "images", "deploy", "docker"],
}
# The part that all of the domain is tested by: only there coverage is measured, since that slows down.
MEASURED = "services"
TESTS = Path(__file__).parent


async def run_part(name: str, directories: list[str], place: str) -> int:
    """The exit status; what it says is passed on line by line."""
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
    async for line in process.stdout:
        sys.stdout.write(f"{name} {line.decode(errors='replace')}")
        sys.stdout.flush()
    return await process.wait()


async def main() -> int:
    # A shell that starts us in the background has us ignore it, and tests of Ctrl-C would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="codehub-tests-") as place:
        statuses = await asyncio.gather(*(run_part(name, each, place) for name, each in PARTS.items()))
    # One that was ended by a signal has a negative status.
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
