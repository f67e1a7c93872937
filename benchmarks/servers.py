"""Real servers and a CodeHub on them in a temporary directory; nothing is left behind."""

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from codehub.embedded.free_ports import choose_ports
from testkit.deployment import Deployment, open_deployment, running_servers
from testkit.waiting import until

STOP_SECONDS = 20
UNLIMITED = {"CODEHUB_API_REQUESTS_PER_SECOND": "1000000"}


@dataclass(frozen=True)
class ApiProcess:
    """A running `python -m api`."""

    pid: int
    port: int


@asynccontextmanager
async def real_deployment(**extra: str) -> AsyncIterator[Deployment]:
    """Run PostgreSQL, Redis, S3 and Temporal as `codehub up` does, with one CodeHub on them."""
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as directory:
        data = Path(directory, "data")
        data.mkdir()  # noqa: ASYNC240 (a single fast call)
        async with (
            running_servers(Path(directory, "stack")) as servers,
            open_deployment(servers, data, **extra) as deployment,
        ):
            yield deployment


@asynccontextmanager
async def run_worker(
    deployment: Deployment, module: str = "worker"
) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Run a worker in a process of its own, as in production."""
    async with _run_module(deployment, module, "worker", {}) as process:
        yield process


@asynccontextmanager
async def run_api(deployment: Deployment) -> AsyncIterator[ApiProcess]:
    """Run the API in a process of its own, as in production, without a rate limit."""
    port = choose_ports(["api"], {})["api"]
    extra = {**UNLIMITED, "CODEHUB_API_PORT": str(port)}
    async with _run_module(deployment, "api", "api", extra) as process:
        yield ApiProcess(process.pid, port)


@asynccontextmanager
async def _run_module(
    deployment: Deployment, module: str, name: str, extra: Mapping[str, str]
) -> AsyncIterator[subprocess.Popen[bytes]]:
    ready = Path(deployment.environment["CODEHUB_DATA_DIR"], f"{name}.ready")
    ready.unlink(missing_ok=True)  # noqa: ASYNC240 (a single fast call)
    environment = {
        **deployment.environment,
        **extra,
        f"CODEHUB_{name.upper()}_READY_FILE": str(ready),
    }
    command = (sys.executable, "-m", module)
    with background_process(command, environment, ready.with_suffix(".log")) as process:

        async def is_ready() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"{module} exited with status {process.returncode}")
            return ready.exists()  # noqa: ASYNC240 (a single fast call)

        await until(is_ready, f"{module} is ready")
        yield process


@contextmanager
def background_process(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command that writes to a log file; stop it at the end."""
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 (a trusted command)
            command, env=dict(environment), stdout=output, stderr=output, cwd=log.parent
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
