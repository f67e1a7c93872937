"""CodeHub's own processes on this machine: each is a line in this table."""

import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from codehub.embedded.child_process import CannotPrepare, Child
from codehub.embedded.data_dir import DataDir
from codehub.settings import Settings


@dataclass(frozen=True)
class Listening:
    """Where a process takes connections, and the setting to change where that is taken already."""

    host: str
    port: int
    setting: str

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def _api(settings: Settings) -> Listening:
    return Listening(settings.api.host, settings.api.port, "CODEHUB_API_PORT")


def _proxy(settings: Settings) -> Listening:
    return Listening(settings.proxy.host, settings.proxy.port, "CODEHUB_PROXY_PORT")


@dataclass(frozen=True)
class CodeHubProcess:
    """A module that is run; it makes the file named by CODEHUB_<MODULE>_READY_FILE once it is ready."""

    name: str
    module: str
    title: str
    listening: Callable[[Settings], Listening] | None = None
    stop_seconds: float = 30


PROCESSES = (
    CodeHubProcess("worker", "worker", "Worker"),
    CodeHubProcess("api", "api", "API", _api),
    CodeHubProcess("proxy", "proxy", "Proxy", _proxy),
)


def child(
    process: CodeHubProcess, data: DataDir, settings: Settings, environment: Mapping[str, str]
) -> Child:
    ready_file = data.ready_file(process.name)
    listening = process.listening(settings) if process.listening else None

    async def prepare() -> None:
        ready_file.unlink(missing_ok=True)
        if listening is not None:
            _require_free(listening, process.title)

    async def is_ready() -> bool:
        return ready_file.exists()

    return Child(
        name=process.name,
        title=process.title,
        # -P: the working directory is no place to import from.
        command=(sys.executable, "-P", "-m", process.module),
        directory=data.root,
        address=listening.address if listening else "",
        is_ready=is_ready,
        environment={**environment, f"CODEHUB_{process.module.upper()}_READY_FILE": str(ready_file)},
        prepare=prepare,
        remove_leftovers=lambda: ready_file.unlink(missing_ok=True),
        stop_seconds=process.stop_seconds,
    )


def _require_free(listening: Listening, title: str) -> None:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    with socket.socket(family) as probe:
        # What lingers of closed connections does not count; a server that listens does.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((listening.host, listening.port))
        except OSError as error:
            raise CannotPrepare(
                f"The {title} cannot listen on {listening.address} ({error.strerror}); "
                f"choose another port with {listening.setting}."
            ) from error
