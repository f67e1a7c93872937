"""Put one instance on its way: a port and a token recorded first, then the process."""

import os
import secrets
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from codehub.adapters.local import processes, sandbox
from codehub.adapters.local.ides import Ide, Launch
from codehub.adapters.local.instance_files import LOCK_NAME, InstanceState, Log, read_state
from codehub.adapters.local.locks import hold_blocking, take_life
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
    """Starts IDEs below a root, in a sandbox if there is a program for it."""

    root: LocalRoot
    bubblewrap: str | None

    def launch(self, request: InstanceRequest, name: str, ide: Ide) -> None:
        """Start a process that will be found again from its first moment on, even if we die meanwhile."""
        directory = self.root.instance(request.workspace_id)
        directory.mkdir(mode=PRIVATE, exist_ok=True)
        (directory / "tmp").mkdir(mode=PRIVATE, exist_ok=True)
        life = take_life(directory / LOCK_NAME)
        try:
            state = self._record(directory, name, request.image_ref)
            self._spawn(request.workspace_id, ide, state, life)
        finally:
            os.close(life)

    def _record(self, directory: Path, name: str, image_ref: str) -> InstanceState:
        # One at a time, so that no two instances are given the same port: the proxy would mix them up.
        with ExitStack() as stack:
            hold_blocking(self.root.locks / _PORTS_LOCK, stack)
            states = (read_state(other) for other in self.root.instances.iterdir() if other != directory)
            port = _free_port({state.port for state in states if state})
            state = InstanceState(name, port, secrets.token_urlsafe(TOKEN_BYTES), image_ref)
            state.write(directory)
        return state

    def _spawn(self, workspace_id: WorkspaceId, ide: Ide, state: InstanceState, life: int) -> None:
        directory, home = self.root.instance(workspace_id), self.root.volume(workspace_id)
        seen_home = sandbox.HOME if self.bubblewrap else str(home)
        private = sandbox.PRIVATE if self.bubblewrap else str(directory / "tmp")
        launch = Launch(workspace_id, state.port, state.token, seen_home, private)
        words = ide.command + (ide.sandboxed_options if self.bubblewrap else ())
        command = [launch.fill(word) for word in words]
        if self.bubblewrap:
            sandbox.write_accounts(directory)
            command = sandbox.wrap(
                self.bubblewrap, command, home=home, accounts=directory, visible=ide.visible, life=life
            )
        log = Log(directory).open()
        try:
            processes.spawn(
                command,
                environment=self._environment(workspace_id, ide, launch),
                directory=home,
                log=log,
                life=life,
            )
        except OSError as error:
            raise Transient(ErrorReason.ACTION_FAILED, f"The IDE cannot be started ({error}).") from error
        finally:
            os.close(log)

    def _environment(self, workspace_id: WorkspaceId, ide: Ide, launch: Launch) -> dict[str, str]:
        """Nothing of ours is passed on: our own environment holds credentials."""
        # Our own environment is not for people to install into.
        shown = (path for path in ide.visible if not (path / "pyvenv.cfg").exists())
        programs = [str(path.parent if path.is_file() else path / "bin") for path in shown]
        own = {name: launch.fill(value) for name, value in ide.environment.items()}
        return {
            "PATH": ":".join([f"{launch.home}/.local/bin", *programs, _SYSTEM_PATH]),
            "HOME": launch.home,
            "TMPDIR": launch.private,
            "USER": "coder",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            processes.MARKER: self.root.marker(workspace_id),
            **own,
        }


def _free_port(taken: set[int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port
