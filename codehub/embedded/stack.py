"""The one-machine stack: the servers CodeHub needs, then its own processes, all supervised by this one."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from codehub.embedded import processes
from codehub.embedded.backends import VARIABLE
from codehub.embedded.child_process import CannotPrepare, ChildState, Observer, Status
from codehub.embedded.data_dir import DataDir
from codehub.embedded.servers.base import Place
from codehub.embedded.servers.registry import TITLES, children, environment, external_addresses, prepare
from codehub.embedded.state import locked, write_state
from codehub.embedded.supervisor import STABLE_SECONDS, Supervisor
from codehub.settings import Settings

NOTHING: Mapping[str, str] = {}


def _ignore(_status: Status) -> None:
    pass


class EmbeddedStack:
    """Everything that runs on one data directory; entering starts the servers, leaving stops all."""

    def __init__(
        self,
        data_dir: Path,
        settings: Settings,
        observer: Observer = _ignore,
        *,
        stable_seconds: float = STABLE_SECONDS,
    ) -> None:
        # Every path that a child gets is absolute, wherever it is started.
        self.data = DataDir(data_dir.absolute())
        self._settings = settings
        self._observer = observer
        self._supervisor = Supervisor(self.data.logs, self._changed, stable_seconds)
        self._place: Place | None = None
        # What runs workspaces, once that is decided; CodeHub's processes are told.
        self.instance_backend: str | None = None
        self._held = ExitStack()
        self._external = [
            Status(name, TITLES[name], address, ChildState.EXTERNAL, datetime.now(UTC))
            for name, address in external_addresses(settings).items()
        ]

    @property
    def environment(self) -> dict[str, str]:
        """The settings that lead a CodeHub process to these servers. It holds secrets."""
        if self._place is None:
            raise RuntimeError("the stack has not been started")
        chosen = {VARIABLE: self.instance_backend} if self.instance_backend else {}
        return {**environment(self._place), **chosen}

    @property
    def statuses(self) -> list[Status]:
        order = list(TITLES)
        servers = sorted(
            (each for each in (*self._external, *self._supervisor.statuses) if each.name in TITLES),
            key=lambda each: order.index(each.name),
        )
        return [*servers, *(each for each in self._supervisor.statuses if each.name not in TITLES)]

    @property
    def urls(self) -> dict[str, str]:
        """What a person may open in a browser."""
        temporal = self.environment.get("CODEHUB_TEMPORAL_UI_URL")
        # Nobody talks to the API's own port but the proxy.
        has_front_door = any(each.name == "proxy" for each in self._supervisor.statuses)
        public = self._settings.public_base_url if has_front_door else None
        urls = {
            "CodeHub": public,
            "REST API": public and f"{public}/api/v1/openapi.json",
            "Temporal Web UI": temporal,
        }
        return {name: url for name, url in urls.items() if url}

    def claim(self) -> None:
        """Take the data directory, or raise AlreadyRunning; choose ports and credentials."""
        try:
            self.data.create()
        except OSError as error:
            raise CannotPrepare(
                f"{self.data.root} cannot be used ({error.strerror}); name another with CODEHUB_DATA_DIR."
            ) from error
        self._held.enter_context(locked(self.data))
        self._held.callback(self.data.state.unlink, missing_ok=True)
        self._place = prepare(self.data, self._settings)
        for status in self._external:
            self._observer(status)
        self._supervisor.add(children(self._place))

    async def start_servers(self) -> None:
        """Return when all of them are ready; raise StartFailed at the first that does not get there."""
        await self._supervisor.start()

    async def start_processes(
        self,
        wanted: Sequence[processes.CodeHubProcess],
        inherited: Mapping[str, str],
        instead: Mapping[str, str] = NOTHING,
    ) -> None:
        """Start CodeHub's own processes; what they inherit gives way to the stack's environment.

        `instead` goes before both: the game day puts a proxy between them and a server.
        """
        together = {**inherited, **self.environment, **instead}
        self._supervisor.add([processes.child(each, self.data, self._settings, together) for each in wanted])
        await self._supervisor.start()

    async def stop(self) -> None:
        """Processes first, then servers; then the data directory is free for others."""
        await self._supervisor.stop()
        self._held.close()

    def hurry(self) -> None:
        """Do not wait any longer for anything to end by itself."""
        self._supervisor.hurry()

    async def kill(self, name: str) -> None:
        """kill -9 a part, as an accident would; it is started again by itself."""
        await self._supervisor.kill(name)

    async def restart(self, name: str) -> None:
        """Stop a part properly and return when it is ready again, on the same port."""
        await self._supervisor.restart(name)

    async def wait_ready(self, name: str) -> None:
        """Return when this part is ready; an external one is taken to be."""
        if all(each.name != name for each in self._external):
            await self._supervisor.wait_ready(name)

    async def __aenter__(self) -> Self:
        try:
            self.claim()
            await self.start_servers()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    def _changed(self, status: Status) -> None:
        write_state(self.data, self.statuses, self.urls, self.instance_backend)
        self._observer(status)
