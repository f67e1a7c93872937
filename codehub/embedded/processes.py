"""The processes of CodeHub itself: worker, API, proxy and egress gateway."""

import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from codehub.embedded.child_process import CannotPrepare, Child
from codehub.embedded.data_dir import DataDir
from codehub.settings import Settings


@dataclass(frozen=True)
class ListenAddress:
    """The address that a process listens on, and the setting that changes its port."""

    host: str
    port: int
    setting: str

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def _api(settings: Settings) -> ListenAddress:
    return ListenAddress(settings.api.host, settings.api.port, "CODEHUB_API_PORT")


def _proxy(settings: Settings) -> ListenAddress:
    return ListenAddress(settings.proxy.host, settings.proxy.port, "CODEHUB_PROXY_PORT")


@dataclass(frozen=True)
class CodeHubProcess:
    """A module to run. When it is ready, it creates the file that CODEHUB_<MODULE>_READY_FILE names."""

    name: str
    module: str
    title: str
    listening: Callable[[Settings], ListenAddress] | None = None
    stop_seconds: float = 30


PROCESSES = (
    CodeHubProcess("worker", "worker", "Worker"),
    CodeHubProcess("api", "api", "API", _api),
    CodeHubProcess("proxy", "proxy", "Proxy", _proxy),
    CodeHubProcess("egress", "egress", "Egress gateway"),
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
        # -P: do not import from the working directory.
        command=(sys.executable, "-P", "-m", process.module),
        directory=data.root,
        address=listening.address if listening else "",
        is_ready=is_ready,
        environment={**environment, f"CODEHUB_{process.module.upper()}_READY_FILE": str(ready_file)},
        prepare=prepare,
        remove_leftovers=lambda: ready_file.unlink(missing_ok=True),
        stop_seconds=process.stop_seconds,
    )


def _require_free(listening: ListenAddress, title: str) -> None:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    with socket.socket(family) as probe:
        # Ignore closed connections that linger, but not a server that listens.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((listening.host, listening.port))
        except OSError as error:
            raise CannotPrepare(
                f"The {title} cannot listen on {listening.address} ({error.strerror}); "
                f"choose another port with {listening.setting}."
            ) from error
