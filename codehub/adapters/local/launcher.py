"""Starts an instance: records its token first, then starts the process."""

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from codehub.adapters.local import processes, sandbox
from codehub.adapters.local.cgroups import Limits, create_cgroups
from codehub.adapters.local.ides import Ide, LaunchValues
from codehub.adapters.local.instance_files import LOCK_NAME, SOCKETS_NAME, InstanceState, Log
from codehub.adapters.local.locks import acquire_alive_lock
from codehub.adapters.local.owners import Owners
from codehub.adapters.local.root import PRIVATE, LocalRoot
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.instance_egress import GATEWAY_DIRECTORY, EgressAccess, proxy_environment, ssh_config
from codehub.instance_ports import RESERVED_PORTS, forwarder_options
from codehub.ports import InstanceRequest

TOKEN_BYTES = 32
# The agent's package is not installed inside the sandbox.
RUN_AGENT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from workspace_agent.__main__ import main; sys.exit(main(sys.argv[1:]))"
)
# See workspace_agent/options.py.
AGENT_VARIABLE = "CODEHUB_AGENT"
SSH_PROXY = f"{sandbox.AGENT_PATH}/{sandbox.AGENT_PACKAGE.name}/ssh_proxy.py"
# Instances may enter the directory of the gateway's socket, but not list or change it.
EGRESS_MODE = 0o711
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Descriptors(NamedTuple):
    """The descriptors that the new process inherits; `system_calls` is the seccomp filter of a sandbox."""

    alive_lock: int
    system_calls: int | None


@dataclass(frozen=True)
class Launcher:
    """Starts IDEs below a root."""

    root: LocalRoot
    sandboxed: bool
    owners: Owners
    # Without it, a sandboxed instance has no network access.
    egress: EgressAccess | None = None
    # For sandboxed instances.
    limits: Limits = field(default_factory=Limits)
    # For all programs in workspaces.
    environment: Mapping[str, str] = field(default_factory=dict)

    def launch(self, request: InstanceRequest, name: str, ide: Ide) -> None:
        """Start the process. It can be found from the first moment, even if this process dies now."""
        directory = self.root.instance(request.workspace_id)
        directory.mkdir(mode=PRIVATE, exist_ok=True)
        (directory / "tmp").mkdir(mode=PRIVATE, exist_ok=True)
        with contextlib.ExitStack() as opened:
            alive_lock = acquire_alive_lock(directory / LOCK_NAME)
            opened.callback(os.close, alive_lock)
            system_calls = opened.enter_context(sandbox.open_filter()) if self.sandboxed else None
            state = InstanceState(name, secrets.token_hex(TOKEN_BYTES), request.image_ref)
            state.write(directory)
            self._spawn(request.workspace_id, ide, state, Descriptors(alive_lock, system_calls))

    def _spawn(
        self, workspace_id: WorkspaceId, ide: Ide, state: InstanceState, inherited: Descriptors
    ) -> None:
        directory, home = self.root.instance(workspace_id), self.root.volume(workspace_id)
        sockets = directory / SOCKETS_NAME
        sockets.mkdir(mode=PRIVATE, exist_ok=True)
        if (uid := self.owners.claim(workspace_id)) is not None:
            os.chown(sockets, uid, uid)
        values = LaunchValues(
            workspace_id,
            state.token,
            home=sandbox.HOME if self.sandboxed else str(home),
            private=sandbox.PRIVATE if self.sandboxed else str(directory / "tmp"),
        )
        inside = sandbox.SOCKETS if self.sandboxed else str(sockets)
        services = {"ports": self._forwarder(workspace_id, inside, state)}
        options: dict[str, object] = {"sockets": inside, "ide_socket": state.socket, "services": services}
        template = ide.command + (ide.sandboxed_options if self.sandboxed else ())
        command = [*self._agent(), *(values.fill(part) for part in template)]
        if inherited.system_calls is not None:
            sandbox.write_accounts(directory, uid)
            visible = (*ide.visible, Path(sys.base_prefix))
            mounts = sandbox.Mounts(home, sockets, directory, visible, self._place_egress(directory))
            program = sandbox.require_bubblewrap(self.owners.uids)
            groups = create_cgroups(self.root.marker(workspace_id), self.limits) if uid else {}
            options["limits"] = self._rlimits(groups)
            command = sandbox.enter(
                program,
                command,
                mounts,
                uid=uid,
                filter_descriptor=inherited.system_calls,
                alive_lock=inherited.alive_lock,
                cgroups=tuple(groups.values()),
            )
        environment = self._environment(workspace_id, ide, values)
        if self.sandboxed and self.egress:
            services["egress"] = self.egress.relay_options(workspace_id)
            environment |= proxy_environment()
        log = Log(directory).open()
        try:
            processes.spawn(
                command,
                environment={**environment, AGENT_VARIABLE: json.dumps(options)},
                directory=home,
                log=log,
                descriptors=[each for each in inherited if each is not None],
            )
        except OSError as error:
            raise Transient(ErrorReason.ACTION_FAILED, f"The IDE cannot be started ({error}).") from error
        finally:
            os.close(log)

    def _forwarder(self, workspace_id: WorkspaceId, sockets: str, state: InstanceState) -> dict[str, str]:
        """Return the options of the agent's port forwarder."""
        # Instances that share the host's network must not open each other's ports.
        marker = "" if self.sandboxed else f"{processes.MARKER_VARIABLE}={self.root.marker(workspace_id)}"
        address = {"sockets": sockets, "name": state.ports_socket}
        return forwarder_options(address, RESERVED_PORTS, marker=marker)

    def _rlimits(self, groups: Mapping[str, Path]) -> dict[str, int]:
        """Return resource limits, for machines without control groups."""
        # Only the processes in the instance's user namespace count.
        limits = {"processes": self.limits.processes}
        if not groups.keys() & {"", "memory"}:
            limits["data_bytes"] = self.limits.memory_bytes
        return limits

    def _place_egress(self, directory: Path) -> Sequence[tuple[Path, str]]:
        """Return the mounts of the gateway's directory and of the ssh configuration."""
        if self.egress is None:
            return ()
        # The gateway may start later, but the directory must exist.
        self.egress.socket.parent.mkdir(mode=EGRESS_MODE, parents=True, exist_ok=True)
        configuration = directory / "ssh_config"
        configuration.write_text(ssh_config(str(Path(sys.executable).resolve()), SSH_PROXY))
        # Readable for the user inside, regardless of our umask.
        configuration.chmod(0o644)
        return ((self.egress.socket.parent, GATEWAY_DIRECTORY), (configuration, "/etc/ssh/ssh_config"))

    def _agent(self) -> tuple[str, ...]:
        """Return the agent's command; the IDE's command is appended to it."""
        path = sandbox.AGENT_PATH if self.sandboxed else str(sandbox.AGENT_PACKAGE.parent)
        # Without site-packages, Python starts in 20 ms.
        return (str(Path(sys.executable).resolve()), "-I", "-S", "-c", RUN_AGENT, path)

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
            **self.environment,
            processes.MARKER_VARIABLE: self.root.marker(workspace_id),
            **own,
        }
