"""Starts an instance: records its port and token first, then starts the process."""

import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from codehub.adapters.local import processes, sandbox
from codehub.adapters.local.ides import Ide, LaunchValues
from codehub.adapters.local.instance_files import LOCK_NAME, InstanceState, Log, read_state
from codehub.adapters.local.locks import acquire_alive_lock, lock_blocking
from codehub.adapters.local.root import PRIVATE, LocalRoot
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.health import HOST
from codehub.ports import InstanceRequest

TOKEN_BYTES = 32
_PORTS_LOCK = "ports"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Launcher:
    """Starts IDEs below a root, in a sandbox if bubblewrap is available."""

    root: LocalRoot
    bubblewrap: str | None

    def launch(self, request: InstanceRequest, name: str, ide: Ide) -> None:
        """Start the process. It can be found from the first moment, even if this process dies now."""
        directory = self.root.instance(request.workspace_id)
        directory.mkdir(mode=PRIVATE, exist_ok=True)
        (directory / "tmp").mkdir(mode=PRIVATE, exist_ok=True)
        alive_lock = acquire_alive_lock(directory / LOCK_NAME)
        try:
            state = self._record(directory, name, request.image_ref)
            self._spawn(request.workspace_id, ide, state, alive_lock)
        finally:
            os.close(alive_lock)

    def _record(self, directory: Path, name: str, image_ref: str) -> InstanceState:
        # One at a time, so that no two instances get the same port: the proxy would mix them up.
        with lock_blocking(self.root.locks / _PORTS_LOCK):
            states = (read_state(other) for other in self.root.instances.iterdir() if other != directory)
            port = _free_port({state.port for state in states if state})
            state = InstanceState(name, port, secrets.token_urlsafe(TOKEN_BYTES), image_ref)
            state.write(directory)
        return state

    def _spawn(self, workspace_id: WorkspaceId, ide: Ide, state: InstanceState, alive_lock: int) -> None:
        directory, home = self.root.instance(workspace_id), self.root.volume(workspace_id)
        seen_home = sandbox.HOME if self.bubblewrap else str(home)
        private = sandbox.PRIVATE if self.bubblewrap else str(directory / "tmp")
        values = LaunchValues(workspace_id, state.port, state.token, seen_home, private)
        template = ide.command + (ide.sandboxed_options if self.bubblewrap else ())
        command = [values.fill(part) for part in template]
        if self.bubblewrap:
            sandbox.write_accounts(directory)
            command = sandbox.wrap(
                self.bubblewrap,
                command,
                home=home,
                accounts=directory,
                visible=ide.visible,
                alive_lock=alive_lock,
            )
        log = Log(directory).open()
        try:
            processes.spawn(
                command,
                environment=self._environment(workspace_id, ide, values),
                directory=home,
                log=log,
                alive_lock=alive_lock,
            )
        except OSError as error:
            raise Transient(ErrorReason.ACTION_FAILED, f"The IDE cannot be started ({error}).") from error
        finally:
            os.close(log)

    def _environment(self, workspace_id: WorkspaceId, ide: Ide, values: LaunchValues) -> dict[str, str]:
        """Return a fresh environment: the one of this process holds credentials."""
        # Without CodeHub's virtual environment, so that nobody installs packages into it.
        shown = (path for path in ide.visible if not (path / "pyvenv.cfg").exists())
        programs = [str(path.parent if path.is_file() else path / "bin") for path in shown]
        own = {name: values.fill(value) for name, value in ide.environment.items()}
        return {
            "PATH": ":".join([f"{values.home}/.local/bin", *programs, _SYSTEM_PATH]),
            "HOME": values.home,
            "TMPDIR": values.private,
            "USER": "coder",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            processes.MARKER_VARIABLE: self.root.marker(workspace_id),
            **own,
        }


def _free_port(taken: set[int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port
