"""Run every test, or those of one area: `python -m tests.run [AREA [pytest options]]`."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from tests.areas import AREAS, ROOT

# Each group is one pytest with its own servers and directories. The longest come first, so that none is left
# alone at the end.
GROUPS = {
    "containers": ["contracts", "images", "deploy", "docker"],
    "browser": ["e2e", "attacks"],
    "kubernetes": ["kubernetes"],
    "integration": ["integration", "adversarial"],
    "chaos": ["chaos", "gameday"],
    "api": ["cli", "api", "proxy"],
    "workflows": ["replay", "workflows", "model"],
    "front_door": ["front_door", "egress"],
    "bare_machine": ["bare_machine"],
    "unit": ["unit"],
}
# Coverage slows tests down, above all the model's, and these alone cover all of the domain.
MEASURED = "unit"
# Chromium fails its requests whenever a network interface comes or goes, and containers bring some. Root
# gives the browser a network of its own; anybody else runs these groups one after the other.
BROWSER = "browser"
SHARING_A_NETWORK = {BROWSER, "containers"}
OWN_NETWORK = ("unshare", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
# Its cluster takes minutes to build and to run, which CI does not have yet: `make t AREA=kubernetes`.
ON_REQUEST = {"kubernetes"}
# Tests mostly wait for servers.
GROUPS_PER_PROCESSOR = 2
USAGE = 2
IS_ROOT = os.geteuid() == 0
# Printed by tests/conftest.py at the end of each group.
SKIPPED = re.compile(r"(\d+) skipped: (.*)")
# Lines of pytest's short summary.
FAILURE = re.compile(r"(FAILED|ERROR) tests/")


@dataclass
class Run:
    """All groups of a run: its directory for temporary files, and what has happened so far."""

    directory: str
    lanes: asyncio.Semaphore
    network: asyncio.Lock = field(default_factory=asyncio.Lock)
    skips: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)

    async def group(self, name: str) -> bool:
        """Run one group when a lane is free; return whether it passed."""
        async with self._turn(name), self.lanes:
            started = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                *self._command(name),
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
            await self._pass_on_output(name, process)
            # A process that was ended by a signal has a negative status.
            passed = await process.wait() == 0
            verdict = "passed" if passed else "FAILED"
            self.results[name] = f"{verdict} in {time.monotonic() - started:.0f} s"
            return passed

    def _turn(self, name: str) -> AbstractAsyncContextManager[None]:
        return nullcontext() if IS_ROOT or name not in SHARING_A_NETWORK else self.network

    def _command(self, name: str) -> list[str]:
        network = OWN_NETWORK if IS_ROOT and name == BROWSER else ()
        coverage = ["coverage", "run", "-m"] if name == MEASURED else []
        own = [f"--basetemp={self.directory}/{name}", "-o", f"cache_dir={self.directory}/{name}-cache"]
        directories = [f"tests/{each}" for each in GROUPS[name]]
        return [*network, sys.executable, "-m", *coverage, "pytest", *own, *directories]

    async def _pass_on_output(self, name: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for raw in process.stdout:
            line = raw.decode(errors="replace")
            if skipped := SKIPPED.match(line):
                self.skips[skipped[2]] += int(skipped[1])
            if FAILURE.match(line):
                self.failures.append(line.rstrip())
            sys.stdout.write(f"{name} {line}")
            sys.stdout.flush()


async def run_all() -> bool:
    lanes = asyncio.Semaphore(GROUPS_PER_PROCESSOR * (os.cpu_count() or 1))
    directory = tempfile.mkdtemp(prefix="codehub-tests-")
    try:
        run = Run(directory, lanes)
        passed = await asyncio.gather(*(run.group(name) for name in GROUPS if name not in ON_REQUEST))
    finally:
        # Some tests leave trees that are too deep for Python's own rmtree.
        subprocess.run(["rm", "-rf", directory], check=True)  # noqa: ASYNC221, S607 (nothing else runs by now)
    lines = [f"{name} {result}" for name, result in run.results.items()]
    lines += run.failures
    lines += [f"{count} skipped: {reason}" for reason, count in sorted(run.skips.items())]
    sys.stdout.write("\n".join(lines) + "\n")
    return all(passed)


def run_area(name: str, options: list[str]) -> int:
    if name not in AREAS:
        sys.stderr.write(f"Unknown area {name!r}. Choose one: {', '.join(AREAS)}.\n")
        return USAGE
    paths = [str(path.relative_to(ROOT)) for path in AREAS[name].paths()]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *paths, *options], cwd=ROOT, check=False
    ).returncode


def main(arguments: list[str]) -> int:
    if arguments:
        return run_area(arguments[0], arguments[1:])
    # In the background of a shell this process ignores Ctrl-C, and tests of Ctrl-C would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return 0 if asyncio.run(run_all()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
