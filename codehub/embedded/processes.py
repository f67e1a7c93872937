"""CodeHub's own processes on this machine: each is a line in this table."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from codehub.embedded.children import Child
from codehub.embedded.data_dir import DataDir


@dataclass(frozen=True)
class CodeHubProcess:
    """A module that is run; it makes the file named by CODEHUB_<NAME>_READY_FILE once it is ready."""

    name: str
    module: str
    stop_seconds: float = 30


PROCESSES = (CodeHubProcess("worker", "worker"), CodeHubProcess("api", "api"))


def child(process: CodeHubProcess, data: DataDir, environment: Mapping[str, str]) -> Child:
    ready_file = data.ready_file(process.name)

    async def prepare() -> None:
        ready_file.unlink(missing_ok=True)

    async def is_ready() -> bool:
        return ready_file.exists()

    return Child(
        name=process.name,
        title=process.name.capitalize(),
        # -P: the working directory is no place to import from.
        command=(sys.executable, "-P", "-m", process.module),
        directory=data.root,
        address="",
        is_ready=is_ready,
        environment={**environment, f"CODEHUB_{process.name.upper()}_READY_FILE": str(ready_file)},
        prepare=prepare,
        remove_leftovers=lambda: ready_file.unlink(missing_ok=True),
        stop_seconds=process.stop_seconds,
    )
