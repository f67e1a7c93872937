"""Everything that `codehub up` runs: the servers, then CodeHub's own processes."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from codehub.embedded import processes
from codehub.embedded.backends import VARIABLE
from codehub.embedded.child_process import CannotPrepare, ChildState, ChildStatus, StatusListener
from codehub.embedded.data_dir import DataDir
from codehub.embedded.servers.base import StackConfig
from codehub.embedded.servers.registry import (
    TITLES,
    embedded_children,
    environment,
    external_addresses,
    prepare_config,
)
from codehub.embedded.state import lock_data_dir, write_state
from codehub.embedded.supervisor import STABLE_SECONDS, Supervisor
from codehub.settings import Settings

NO_OVERRIDES: Mapping[str, str] = {}


def _ignore(_status: ChildStatus) -> None:
    pass


class EmbeddedStack:
    """All processes of one data directory. Entering starts the servers, leaving stops everything."""

    def __init__(
        self,
        data_dir: Path,
        settings: Settings,
        listener: StatusListener = _ignore,
        *,
        stable_seconds: float = STABLE_SECONDS,
    ) -> None:
        # Absolute, because children run in other directories.
        self.data = DataDir(data_dir.absolute())
        self._settings = settings
        self._listener = listener
        self._supervisor = Supervisor(self.data.logs, self._status_changed, stable_seconds)
        self._config: StackConfig | None = None
        # Set when the backend is chosen; passed to CodeHub's processes.
        self.instance_backend: str | None = None
        self._resources = ExitStack()
        self._external = [
            ChildStatus(name, TITLES[name], address, ChildState.EXTERNAL, datetime.now(UTC))
            for name, address in external_addresses(settings).items()
        ]

    @property
    def environment(self) -> dict[str, str]:
        """The settings that connect a CodeHub process to these servers. They include secrets."""
        if self._config is None:
            raise RuntimeError("the stack has not been started")
        chosen = {VARIABLE: self.instance_backend} if self.instance_backend else {}
        return {**environment(self._config), **chosen}

    @property
    def statuses(self) -> list[ChildStatus]:
        order = list(TITLES)
        servers = sorted(
            (each for each in (*self._external, *self._supervisor.statuses) if each.name in TITLES),
            key=lambda each: order.index(each.name),
        )
        return [*servers, *(each for each in self._supervisor.statuses if each.name not in TITLES)]

    @property
    def urls(self) -> dict[str, str]:
        """The addresses that a person can open in a browser."""
        temporal = self.environment.get("CODEHUB_TEMPORAL_UI_URL")
        # Only the proxy uses the API's own port.
        has_proxy = any(each.name == "proxy" for each in self._supervisor.statuses)
        public = self._settings.public_base_url if has_proxy else None
        urls = {
            "CodeHub": public,
            "REST API": public and f"{public}/api/v1/openapi.json",
            "Temporal Web UI": temporal,
        }
        return {name: url for name, url in urls.items() if url}

    def prepare(self) -> None:
        """Lock the data directory and choose ports and credentials. Raise AlreadyRunning if it is in use."""
        try:
            self.data.create()
        except OSError as error:
            raise CannotPrepare(
                f"{self.data.root} cannot be used ({error.strerror}); set another CODEHUB_DATA_DIR."
            ) from error
        self._resources.enter_context(lock_data_dir(self.data))
        self._resources.callback(self.data.state.unlink, missing_ok=True)
        self._config = prepare_config(self.data, self._settings)
        for status in self._external:
            self._listener(status)
        self._supervisor.add(embedded_children(self._config))

    async def start_servers(self) -> None:
        """Return when all servers are ready. Raise StartFailed at the first failure."""
        await self._supervisor.start()

    async def start_processes(
        self,
        wanted: Sequence[processes.CodeHubProcess],
        inherited: Mapping[str, str],
        overrides: Mapping[str, str] = NO_OVERRIDES,
    ) -> None:
        """Start CodeHub's own processes.

        The stack's environment overrides what they inherit, and `overrides` override both: the game day puts
        a proxy between them and a server.
        """
        together = {**inherited, **self.environment, **overrides}
        self._supervisor.add([processes.child(each, self.data, self._settings, together) for each in wanted])
        await self._supervisor.start()

    async def stop(self) -> None:
        """Stop the processes, then the servers, then unlock the data directory."""
        await self._supervisor.stop()
        self._resources.close()

    def stop_now(self) -> None:
        """Kill everything instead of waiting for it to stop."""
        self._supervisor.stop_now()

    async def kill(self, name: str) -> None:
        """Kill a child with SIGKILL, as a crash would; it is then restarted."""
        await self._supervisor.kill(name)

    async def restart(self, name: str) -> None:
        """Stop a child gracefully and return when it is ready again, on the same port."""
        await self._supervisor.restart(name)

    async def wait_ready(self, name: str) -> None:
        """Return when the child is ready, or at once for an external server."""
        if all(each.name != name for each in self._external):
            await self._supervisor.wait_ready(name)

    async def __aenter__(self) -> Self:
        try:
            self.prepare()
            await self.start_servers()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    def _status_changed(self, status: ChildStatus) -> None:
        write_state(self.data, self.statuses, self.urls, self.instance_backend)
        self._listener(status)
