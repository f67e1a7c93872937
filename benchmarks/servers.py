"""Real servers and a deployment on them in a temporary directory; nothing is left behind."""

import asyncio
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from codehub.embedded.stack import EmbeddedStack
from codehub.settings import Settings
from testkit.deployment import Deployment, make_template, open_deployment
from testkit.waiting import until

STOP_SECONDS = 20


def run_to_the_end(benchmark: Coroutine[None, None, None]) -> None:
    """Tidy up also when told to stop: SIGTERM is taken like a Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asyncio.run(benchmark)


@asynccontextmanager
async def real_deployment(**extra: str) -> AsyncIterator[Deployment]:
    """PostgreSQL, Redis, S3 and Temporal as `codehub up` starts them, and one CodeHub on them."""
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as directory:
        async with EmbeddedStack(Path(directory, "stack"), Settings()) as stack:
            template = await make_template(stack.environment["CODEHUB_DATABASE_URL"])
            async with open_deployment(
                stack.environment, template, _made(directory, "site"), **extra
            ) as deployment:
                yield deployment


@asynccontextmanager
async def worker_of(deployment: Deployment, module: str = "worker") -> AsyncIterator[subprocess.Popen[bytes]]:
    """A worker as its own process, as in production; it takes work from the start, and ends gently."""
    ready = Path(deployment.environment["CODEHUB_DATA_DIR"], "worker.ready")
    with _process(deployment, module, ready) as process:

        async def is_ready() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"the worker ended with status {process.returncode}")
            return ready.exists()  # noqa: ASYNC240 (once, in an instant)

        await until(is_ready, "the worker is ready")
        yield process


@contextmanager
def _process(deployment: Deployment, module: str, ready: Path) -> Iterator[subprocess.Popen[bytes]]:
    ready.unlink(missing_ok=True)
    with ready.with_suffix(".log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 (our own module)
            (sys.executable, "-m", module),
            env={**deployment.environment, "CODEHUB_WORKER_READY_FILE": str(ready)},
            stdout=log,
            stderr=log,
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


def _made(directory: str, name: str) -> Path:
    path = Path(directory, name)
    path.mkdir()
    return path
