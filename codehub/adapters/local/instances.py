"""IDE instances as process groups that outlive the worker."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from codehub.adapters.local import processes, sandbox
from codehub.adapters.local.cgroups import Limits, remove_cgroups
from codehub.adapters.local.ides import Ide, LaunchValues, installed_ides, resolve_ide
from codehub.adapters.local.instance_files import (
    LIMIT_BYTES,
    LOCK_NAME,
    SOCKETS_NAME,
    InstanceState,
    Log,
    read_state,
    state_exists,
)
from codehub.adapters.local.launcher import Launcher
from codehub.adapters.local.locks import is_locked, lock_async
from codehub.adapters.local.owners import UIDS, Owners
from codehub.adapters.local.root import LocalRoot, translate_errors
from codehub.adapters.local.volumes import remove_tree, volume_exists
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.naming import parse_workspace_id
from codehub.domain.states import ErrorReason
from codehub.health import is_healthy
from codehub.instance_egress import EgressAccess
from codehub.instance_ports import OLD_AGENT, RESERVED_PORTS, ask_for_ports, port_upstream
from codehub.ports import (
    InstanceRequest,
    ListeningPort,
    Outdated,
    PortUnavailable,
    Progress,
    Report,
    Upstream,
)

POLL_SECONDS = 0.05
DEFAULT_LIMITS = Limits()
FOLLOW_SECONDS = 0.25
HEALTH_CHECKS_AT_ONCE = 64
REPORTED_LINES = 10
REPORTED_BYTES = 1500


@dataclass(frozen=True)
class Timeouts:
    """Timeouts in seconds."""

    start: float = 60.0
    stop: float = 10.0
    kill: float = 10.0
    health: float = 2.0


@dataclass(frozen=True)
class InstanceRecord:
    """The files and the lock of an instance. An exited instance exists until it is stopped."""

    exists: bool
    alive: bool
    state: InstanceState | None


class LocalInstances:
    """An instance is recorded before it starts and runs while its lock is held. No process id is stored."""

    def __init__(
        self,
        root: Path,
        *,
        ides: Mapping[str, Ide] | None = None,
        sandboxed: bool = True,
        uids: range = UIDS,
        egress: EgressAccess | None = None,
        limits: Limits = DEFAULT_LIMITS,
        environment: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        log_limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self._root = LocalRoot.at(root)
        self._ides = installed_ides() if ides is None else ides
        self._owners = Owners(self._root, uids if sandboxed and os.geteuid() == 0 else None)
        self._launcher = Launcher(self._root, sandboxed, self._owners, egress, limits, environment or {})
        self._timeouts = timeouts or Timeouts()
        self._log_limit_bytes = log_limit_bytes
        self._health_checks = asyncio.Semaphore(HEALTH_CHECKS_AT_ONCE)

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        return await self._fact(workspace_id, await self._read(workspace_id))

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        records = await self._root.run(self._scan)
        facts = await asyncio.gather(*(self._fact(each, record) for each, record in records.items()))
        found = dict(zip(records, facts, strict=True))
        return {each: fact for each, fact in found.items() if fact is not ContainerFact.ABSENT}

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        records = await self._root.run(self._scan) if workspace_id is None else {}
        if workspace_id is not None:
            records[workspace_id] = await self._read(workspace_id)
        alive = {each: record.state for each, record in records.items() if record.alive and record.state}
        return {each: ("IDE",) for each, state in alive.items() if self._ide_has_changed(state)}

    async def start(self, request: InstanceRequest, report: Report) -> None:
        async with self._operation(request.workspace_id):
            await self._check_volume(request.workspace_id)
            if not await self._ide_is_running(request.workspace_id, await self._read(request.workspace_id)):
                name = resolve_ide(self._ides, request.image_ref)
                await self._check_sandbox(self._ides[name])
                report(Progress("launch", unit="steps"))
                await self._remove(request.workspace_id)
                await self._root.run(lambda: self._launcher.launch(request, name, self._ides[name]))
            await self._wait_until_ready(request.workspace_id, report)

    async def pull(self, image_ref: str, report: Report) -> None:
        """Check that the IDE is installed; there is nothing to pull."""
        del report
        resolve_ide(self._ides, image_ref)

    async def stop(self, workspace_id: WorkspaceId) -> None:
        async with self._operation(workspace_id):
            await self._remove(workspace_id)

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        record = await self._read(workspace_id)
        state = record.state
        if state is None or await self._fact(workspace_id, record) is not ContainerFact.READY:
            return None
        ide = self._ides[state.ide]
        headers = _launch_values(workspace_id, state).fill_headers(ide.headers)
        return Upstream(self._socket(workspace_id, state), 0, ide.keep_prefix, headers, state.ide)

    async def find_port(self, workspace_id: WorkspaceId, port: int) -> Upstream | None:
        socket = await self._find_ports_socket(workspace_id)
        return port_upstream(socket, 0, port, RESERVED_PORTS) if socket else None

    async def list_ports(self, workspace_id: WorkspaceId) -> Sequence[ListeningPort]:
        socket = await self._find_ports_socket(workspace_id)
        return await ask_for_ports(socket, 0) if socket else ()

    async def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        log = Log(self._root.instance(workspace_id), self._log_limit_bytes)
        content, offset = await self._root.run(lambda: log.tail(tail))
        if content:
            yield content
        while follow:
            # Check before reading, so that the last output before an exit is read too.
            alive = (await self._read(workspace_id)).alive
            content, offset = await self._root.run(partial(log.read_since, offset))
            if content:
                yield content
            elif not alive:
                return
            else:
                await asyncio.sleep(FOLLOW_SECONDS)

    @asynccontextmanager
    async def _operation(self, workspace_id: WorkspaceId) -> AsyncIterator[None]:
        """Run one start or stop at a time across all processes. This also blocks removal of the volume."""
        lock = self._root.locks / f"{parse_workspace_id(workspace_id)}.instance"
        await self._root.run(lambda: None)
        with translate_errors():
            async with lock_async(lock):
                yield

    async def _check_sandbox(self, ide: Ide) -> None:
        """Refuse to start without a working sandbox."""
        if self._launcher.sandboxed:
            try:
                sandbox.require_hidden(self._root.path, ide.visible, self._owners.uids)
                await asyncio.to_thread(sandbox.require_bubblewrap, self._owners.uids)
            except sandbox.NoSandbox as error:
                raise Transient(ErrorReason.ACTION_FAILED, str(error)) from error

    async def _check_volume(self, workspace_id: WorkspaceId) -> None:
        if not await self._root.run(lambda: volume_exists(self._root.volume(workspace_id))):
            raise Transient(ErrorReason.ACTION_FAILED, "The volume of this workspace does not exist.")

    async def _wait_until_ready(self, workspace_id: WorkspaceId, report: Report) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        while (elapsed := clock() - began) < self._timeouts.start:
            report(Progress("wait for the IDE", int(elapsed), int(self._timeouts.start), "seconds"))
            record = await self._read(workspace_id)
            if not record.alive:
                break
            if await self._is_healthy(workspace_id, record.state):
                return
            await asyncio.sleep(POLL_SECONDS)
        raise await self._give_up(workspace_id)

    async def _give_up(self, workspace_id: WorkspaceId) -> Transient:
        log = Log(self._root.instance(workspace_id), self._log_limit_bytes)
        output, _ = await self._root.run(lambda: log.tail(REPORTED_LINES))
        await self._remove(workspace_id)
        text = output[-REPORTED_BYTES:].decode(errors="replace").strip() or "nothing"
        return Transient(ErrorReason.ACTION_FAILED, f"The IDE did not become ready. Its last output: {text}")

    async def _remove(self, workspace_id: WorkspaceId) -> None:
        """Terminate the instance, then delete its files. The reverse order could lose a running instance."""
        marker = self._root.marker(workspace_id)
        await processes.terminate(marker, grace=self._timeouts.stop, kill_timeout=self._timeouts.kill)
        await asyncio.to_thread(remove_cgroups, marker)
        await self._root.run(lambda: remove_tree(self._root.instance(workspace_id)))

    def _scan(self) -> dict[WorkspaceId, InstanceRecord]:
        processes.reap()
        records = {}
        for directory in self._root.instances.iterdir():
            workspace_id = parse_workspace_id(directory.name)
            Log(directory, self._log_limit_bytes).rotate()
            records[workspace_id] = _read(directory)
        return records

    async def _read(self, workspace_id: WorkspaceId) -> InstanceRecord:
        directory = self._root.instance(workspace_id)
        return await self._root.run(lambda: _read(directory))

    async def _fact(self, workspace_id: WorkspaceId, record: InstanceRecord) -> ContainerFact:
        if not record.alive:
            return ContainerFact.NOT_READY if record.exists else ContainerFact.ABSENT
        if await self._is_healthy(workspace_id, record.state):
            return ContainerFact.READY
        runs = await self._ide_is_running(workspace_id, record)
        return ContainerFact.UNHEALTHY if runs else ContainerFact.NOT_READY

    async def _ide_is_running(self, workspace_id: WorkspaceId, record: InstanceRecord) -> bool:
        """Return whether the IDE itself runs: programs that outlive it keep the lock."""
        if not record.alive or record.state is None:
            return False
        marker = self._root.marker(workspace_id)
        return bool(await self._root.run(lambda: processes.root_processes(processes.find_processes(marker))))

    def _ide_has_changed(self, state: InstanceState) -> bool:
        """Return whether the requested image_ref means another IDE now; an unavailable one does not count."""
        try:
            return state.image_ref is not None and resolve_ide(self._ides, state.image_ref) != state.ide
        except Permanent:
            return False

    def _socket(self, workspace_id: WorkspaceId, state: InstanceState) -> str:
        return str(self._root.instance(workspace_id) / SOCKETS_NAME / state.socket)

    async def _find_ports_socket(self, workspace_id: WorkspaceId) -> str | None:
        """Return the agent's socket for ports, or None if the instance does not run."""
        record = await self._read(workspace_id)
        if not record.alive or record.state is None:
            return None
        socket = self._root.instance(workspace_id) / SOCKETS_NAME / record.state.ports_socket
        if not await self._root.run(lambda: os.path.lexists(socket)):
            raise PortUnavailable(OLD_AGENT)
        return str(socket)

    async def _is_healthy(self, workspace_id: WorkspaceId, state: InstanceState | None) -> bool:
        ide = self._ides.get(state.ide) if state else None
        if state is None or ide is None:
            return False
        values = _launch_values(workspace_id, state)
        async with self._health_checks:
            path, headers = values.fill(ide.health_path), values.fill_headers(ide.headers)
            return await is_healthy(self._socket(workspace_id, state), path, headers, self._timeouts.health)


def _read(directory: Path) -> InstanceRecord:
    return InstanceRecord(state_exists(directory), is_locked(directory / LOCK_NAME), read_state(directory))


def _launch_values(workspace_id: WorkspaceId, state: InstanceState) -> LaunchValues:
    return LaunchValues(workspace_id, state.token)
