"""IDE instances as process groups that outlive the worker."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from codehub.adapters.local import processes, sandbox
from codehub.adapters.local.ides import Ide, Launch, choose, installed_ides
from codehub.adapters.local.instance_files import (
    LIMIT_BYTES,
    LOCK_NAME,
    InstanceState,
    Log,
    exists,
    read_state,
)
from codehub.adapters.local.launcher import Launcher
from codehub.adapters.local.locks import is_alive, waited_for
from codehub.adapters.local.processes import end
from codehub.adapters.local.root import LocalRoot, translate_errors
from codehub.adapters.local.volumes import is_volume, remove_tree
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.naming import parse_workspace_id
from codehub.domain.states import ErrorReason
from codehub.health import HOST, answers
from codehub.ports import InstanceRequest, Outdated, Progress, Report, Upstream

POLL_SECONDS = 0.05
FOLLOW_SECONDS = 0.25
HEALTH_CHECKS_AT_ONCE = 64
REPORTED_LINES = 10
REPORTED_BYTES = 1500


@dataclass(frozen=True)
class Timeouts:
    """How long to wait, in seconds."""

    start: float = 60.0
    stop: float = 10.0
    kill: float = 10.0
    health: float = 2.0


@dataclass(frozen=True)
class Seen:
    """What the disk tells of an instance; one that has exited exists until it is stopped."""

    exists: bool
    alive: bool
    state: InstanceState | None


class LocalInstances:
    """An instance is recorded before it starts and lives while its lock is held: no process id is kept."""

    def __init__(
        self,
        root: Path,
        *,
        ides: Mapping[str, Ide] | None = None,
        sandboxed: bool = True,
        timeouts: Timeouts | None = None,
        log_limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self._root = LocalRoot.at(root)
        self._ides = installed_ides() if ides is None else ides
        self._launcher = Launcher(self._root, sandbox.bubblewrap() if sandboxed else None)
        self._patience = timeouts or Timeouts()
        self._log_limit_bytes = log_limit_bytes
        self._health_checks = asyncio.Semaphore(HEALTH_CHECKS_AT_ONCE)

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        return await self._judge(workspace_id, await self._see(workspace_id))

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        seen = await self._root.run(self._scan)
        facts = await asyncio.gather(
            *(self._judge(workspace_id, each) for workspace_id, each in seen.items())
        )
        found = dict(zip(seen, facts, strict=True))
        return {key: fact for key, fact in found.items() if fact is not ContainerFact.ABSENT}

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        seen = await self._root.run(self._scan) if workspace_id is None else {}
        if workspace_id is not None:
            seen[workspace_id] = await self._see(workspace_id)
        alive = {owner: each.state for owner, each in seen.items() if each.alive and each.state}
        return {owner: ("editor",) for owner, state in alive.items() if self._would_be_another(state)}

    async def start(self, request: InstanceRequest, report: Report) -> None:
        async with self._operation(request.workspace_id):
            await self._check_volume(request.workspace_id)
            if not await self._has_ide(request.workspace_id, await self._see(request.workspace_id)):
                name = choose(self._ides, request.image_ref)
                report(Progress("launch", unit="steps"))
                await self._clear(request.workspace_id)
                await self._root.run(lambda: self._launcher.launch(request, name, self._ides[name]))
            await self._wait_until_ready(request.workspace_id, report)

    async def pull(self, image_ref: str, report: Report) -> None:
        """What is installed here is all there is."""
        del report
        choose(self._ides, image_ref)

    async def stop(self, workspace_id: WorkspaceId) -> None:
        async with self._operation(workspace_id):
            await self._clear(workspace_id)

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        seen = await self._see(workspace_id)
        if seen.state is None or await self._judge(workspace_id, seen) is not ContainerFact.READY:
            return None
        ide = self._ides[seen.state.ide]
        headers = _launch(workspace_id, seen.state).fill_headers(ide.headers)
        return Upstream(HOST, seen.state.port, ide.keep_prefix, headers, seen.state.ide)

    async def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        log = Log(self._root.instance(workspace_id), self._log_limit_bytes)
        content, offset = await self._root.run(lambda: log.tail(tail))
        if content:
            yield content
        while follow:
            # Asked before reading: what it wrote before its end is then read too.
            alive = (await self._see(workspace_id)).alive
            content, offset = await self._root.run(partial(log.read_since, offset))
            if content:
                yield content
            elif not alive:
                return
            else:
                await asyncio.sleep(FOLLOW_SECONDS)

    @asynccontextmanager
    async def _operation(self, workspace_id: WorkspaceId) -> AsyncIterator[None]:
        """One start or stop at a time, across all processes; volumes are not removed meanwhile either."""
        lock = self._root.locks / f"{parse_workspace_id(workspace_id)}.instance"
        await self._root.run(lambda: None)
        with translate_errors():
            async with waited_for(lock):
                yield

    async def _check_volume(self, workspace_id: WorkspaceId) -> None:
        if not await self._root.run(lambda: is_volume(self._root.volume(workspace_id))):
            raise Transient(
                ErrorReason.ACTION_FAILED, "The IDE cannot be started: its volume does not exist."
            )

    async def _wait_until_ready(self, workspace_id: WorkspaceId, report: Report) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        while (elapsed := clock() - began) < self._patience.start:
            report(Progress("wait for the IDE", int(elapsed), int(self._patience.start), "seconds"))
            seen = await self._see(workspace_id)
            if not seen.alive:
                break
            if await self._answers(workspace_id, seen.state):
                return
            await asyncio.sleep(POLL_SECONDS)
        raise await self._give_up(workspace_id)

    async def _give_up(self, workspace_id: WorkspaceId) -> Transient:
        log = Log(self._root.instance(workspace_id), self._log_limit_bytes)
        output, _ = await self._root.run(lambda: log.tail(REPORTED_LINES))
        await self._clear(workspace_id)
        said = output[-REPORTED_BYTES:].decode(errors="replace").strip() or "nothing"
        return Transient(ErrorReason.ACTION_FAILED, f"The IDE did not become ready. It said last: {said}")

    async def _clear(self, workspace_id: WorkspaceId) -> None:
        """End what runs, then forget it: in the other order a crash between would lose sight of it."""
        await end(self._root.marker(workspace_id), grace=self._patience.stop, timeouts=self._patience.kill)
        await self._root.run(lambda: remove_tree(self._root.instance(workspace_id)))

    def _scan(self) -> dict[WorkspaceId, Seen]:
        processes.reap()
        seen = {}
        for directory in self._root.instances.iterdir():
            workspace_id = parse_workspace_id(directory.name)
            Log(directory, self._log_limit_bytes).rotate()
            seen[workspace_id] = _see(directory)
        return seen

    async def _see(self, workspace_id: WorkspaceId) -> Seen:
        directory = self._root.instance(workspace_id)
        return await self._root.run(lambda: _see(directory))

    async def _judge(self, workspace_id: WorkspaceId, seen: Seen) -> ContainerFact:
        if not seen.alive:
            return ContainerFact.NOT_READY if seen.exists else ContainerFact.ABSENT
        if await self._answers(workspace_id, seen.state):
            return ContainerFact.READY
        runs = await self._has_ide(workspace_id, seen)
        return ContainerFact.UNHEALTHY if runs else ContainerFact.NOT_READY

    async def _has_ide(self, workspace_id: WorkspaceId, seen: Seen) -> bool:
        """Programs that outlived their IDE keep the lock of its sandbox, so the lock alone does not tell."""
        if not seen.alive:
            return False
        marker = self._root.marker(workspace_id)
        return bool(await self._root.run(lambda: processes.outermost(processes.find_members(marker))))

    def _would_be_another(self, state: InstanceState) -> bool:
        """Whether what was asked for means another IDE now; one that cannot be had changes nothing."""
        try:
            return state.image_ref is not None and choose(self._ides, state.image_ref) != state.ide
        except Permanent:
            return False

    async def _answers(self, workspace_id: WorkspaceId, state: InstanceState | None) -> bool:
        ide = self._ides.get(state.ide) if state else None
        if state is None or ide is None:
            return False
        launch = _launch(workspace_id, state)
        async with self._health_checks:
            path, headers = launch.fill(ide.health_path), launch.fill_headers(ide.headers)
            return await answers(state.port, path, headers, self._patience.health)


def _see(directory: Path) -> Seen:
    return Seen(exists(directory), is_alive(directory / LOCK_NAME), read_state(directory))


def _launch(workspace_id: WorkspaceId, state: InstanceState) -> Launch:
    return Launch(workspace_id, state.port, state.token)
