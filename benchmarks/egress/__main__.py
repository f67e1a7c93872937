"""`python -m benchmarks.egress`: the gateway beside a direct connection. It needs root."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from codehub.db.session import Database, create_engine
from codehub.egress_tokens import make_preamble
from migrations import runner
from testkit import postgres
from testkit.internet import Internet, running_internet
from testkit.processes import kill, spawn
from testkit.rows import add_user, add_workspace

PROGRAM = Path(__file__).with_name("traffic.py")
ADDRESS, PORT = "198.51.100.2", 9000
MEGABYTES, CONNECTIONS, ROUNDS = 1000, 2000, 3
KEY = "benchmark"
START_SECONDS = 30


async def prepare(url: str) -> str:
    """Create the schema and a workspace; return the first line of its connections."""
    await runner.upgrade(url)
    async with Database(create_engine(url, pool_size=1)) as database, database.transaction() as session:
        return make_preamble(KEY, await add_workspace(session, await add_user(session))).strip()


@contextmanager
def running(
    command: list[str | Path], log: Path, environment: dict[str, str] | None = None
) -> Iterator[None]:
    process = spawn(command, log, environment)
    try:
        deadline = time.monotonic() + START_SECONDS
        while "ready" not in log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text())
        yield
    finally:
        kill(process)


def measure(internet: Internet, kind: str, way: str, preamble: str, amount: int) -> float:
    words = (kind, way, preamble, ADDRESS, str(PORT), str(amount))
    command = internet.at_gateway((sys.executable, PROGRAM, *words))
    run = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return float(run.stdout)


def main() -> None:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="codehub-egress-")))
        url = stack.enter_context(postgres.running_server()).url("postgres")
        preamble = asyncio.run(prepare(url))
        internet = stack.enter_context(running_internet(directory))
        server = internet.outside_command((sys.executable, PROGRAM, "serve", str(PORT)))
        stack.enter_context(running(server, directory / "server.log"))
        environment = {
            **os.environ,
            "CODEHUB_DATABASE_URL": url,
            "CODEHUB_DATA_DIR": str(directory),
            "CODEHUB_EGRESS_KEY": KEY,
        }
        gateway = internet.at_gateway((sys.executable, "-m", "egress"))
        stack.enter_context(running(gateway, directory / "gateway.log", environment))
        ways = {"direct": "direct", "gateway": str(directory / "run" / "egress" / "gateway.sock")}
        for kind, amount, unit in (
            ("throughput", MEGABYTES, "MB/s"),
            ("connections", CONNECTIONS, "connections/s"),
        ):
            for name, way in ways.items():
                results = [measure(internet, kind, way, preamble, amount) for _ in range(ROUNDS)]
                sys.stdout.write(f"{name:8} {statistics.median(results):10.1f} {unit}\n")


if __name__ == "__main__":
    main()
