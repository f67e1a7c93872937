"""Kills the worker before and after every activity of an operation, on any backend."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from testkit.crash_points import KILLED, CrashingWorker, CrashPoint, crashing_process
from testkit.deployment import Deployment
from testkit.trees import Description
from testkit.waiting import until

ROW_STEPS = ("observe", "claim", "settle")
# The mutation check uses only the point where a break shows, because all of them take minutes.
ONLY_AT = "TESTKIT_ONLY_CRASH_AT"
# A sweep could wake a workspace before its turn.
NO_SWEEPS = {
    f"CODEHUB_SWEEPS_{sweep}_SECONDS": str(365 * 24 * 3600) for sweep in ("OBSERVE", "TTL", "GC", "RETENTION")
}


class OpenDeployment(Protocol):
    """Opens a deployment on shared servers, with extra settings."""

    def __call__(self, directory: Path, **extra: str) -> AbstractAsyncContextManager[Deployment]: ...


class RunWorker(Protocol):
    """Runs a worker with these settings that crashes at the point, as a process or a Pod."""

    def __call__(
        self, point: CrashPoint, environment: Mapping[str, str]
    ) -> AbstractAsyncContextManager[CrashingWorker]: ...


@dataclass(frozen=True)
class OperationPath:
    """How to reach an operation, and its steps besides those that all operations have."""

    begin: DesiredState | None
    end: DesiredState
    steps: tuple[str, ...]


COURSES = {
    Operation.PROVISIONING: OperationPath(None, DesiredState.STANDBY, ("provision_volume",)),
    Operation.CREATE_EMPTY_ARCHIVE: OperationPath(
        None, DesiredState.ARCHIVED, ("upload_empty_archive", "commit_archive")
    ),
    Operation.STARTING: OperationPath(DesiredState.STANDBY, DesiredState.RUNNING, ("start_instance",)),
    Operation.STOPPING: OperationPath(DesiredState.RUNNING, DesiredState.STANDBY, ("stop_instance",)),
    Operation.ARCHIVING: OperationPath(
        DesiredState.STANDBY,
        DesiredState.ARCHIVED,
        ("upload_archive", "commit_archive", "remove_archived_volume"),
    ),
    Operation.RESTORING: OperationPath(
        DesiredState.ARCHIVED, DesiredState.STANDBY, ("restore_archive", "mark_restored")
    ),
    Operation.DELETING: OperationPath(
        DesiredState.RUNNING, DesiredState.DELETED, ("stop_instance", "remove_volume")
    ),
}


async def crash_at_every_point(
    operation: Operation,
    open_deployment: OpenDeployment,
    place: Path,
    at_once: int,
    common_steps: Sequence[str] = ROW_STEPS,
    run_worker: RunWorker = crashing_process,
) -> None:
    """Kill a worker at each crash point, in so many deployments at once."""
    path = COURSES[operation]
    steps = [f"{moment}:{step}" for step in (*common_steps, *path.steps) for moment in ("before", "after")]
    points = [point for point in steps if point == os.environ.get(ONLY_AT, point)]
    assert points, f"{operation} has no such point"
    chains = [chain for start in range(at_once) if (chain := points[start::at_once])]

    async def crash(chain: Sequence[str]) -> None:
        directory = place / chain[0].replace(":", "-")
        directory.mkdir()
        async with open_deployment(directory, **NO_SWEEPS) as deployment:
            await crash_one_after_another(deployment, path, chain, directory, run_worker)

    results = await asyncio.gather(*(crash(chain) for chain in chains), return_exceptions=True)
    failed = {
        " or ".join(chain): result
        for chain, result in zip(chains, results, strict=True)
        if isinstance(result, BaseException)
    }
    assert not failed, "\n".join(f"{points}: {describe(error)}" for points, error in failed.items())


def describe(error: BaseException) -> str:
    return "\n".join([repr(error), *getattr(error, "__notes__", ())])


@dataclass(frozen=True)
class Trial:
    """One workspace, its complete home, and the point at which a worker is killed."""

    workspace_id: WorkspaceId
    before: Description
    point: CrashPoint

    def __str__(self) -> str:
        return str(self.point)


async def crash_one_after_another(
    deployment: Deployment, path: OperationPath, points: Sequence[str], directory: Path, run_worker: RunWorker
) -> None:
    """Kill one worker after another; each first finishes what the one before it was killed in."""
    trials = await prepare(deployment, path, points, directory)
    killed: Trial | None = None
    for trial in trials:
        async with run_worker(trial.point, deployment.environment) as worker:
            if killed is not None:
                await recover(deployment, path, killed)
            await request_end(deployment, path, trial.workspace_id)

            async def ended(worker: CrashingWorker = worker) -> bool:
                return await worker.exit_code() is not None

            await until(ended, f"the worker reached {trial}")
            assert await worker.exit_code() == KILLED
        assert trial.point.crashed_file.exists()
        await check_what_counts_as_complete(deployment, path, trial)
        killed = trial
    assert killed is not None
    async with deployment.worker():
        await recover(deployment, path, killed)


async def recover(deployment: Deployment, path: OperationPath, trial: Trial) -> None:
    await deployment.wake(trial.workspace_id)
    await deployment.wait_for_phase(trial.workspace_id, Phase(path.end.value))
    await check(deployment, path, trial)


async def prepare(
    deployment: Deployment, path: OperationPath, points: Sequence[str], directory: Path
) -> list[Trial]:
    """Bring a workspace for each point to the start of the operation, with a complete home."""
    async with deployment.worker():
        prepared = await asyncio.gather(*(prepare_workspace(deployment, path) for _ in points))
    return [
        Trial(
            workspace_id,
            before,
            CrashPoint.parse(point, workspace_id, directory / f"crashed-{workspace_id}"),
        )
        for point, (workspace_id, before) in zip(points, prepared, strict=True)
    ]


async def prepare_workspace(deployment: Deployment, path: OperationPath) -> tuple[WorkspaceId, Description]:
    if path.begin is None:
        return await deployment.create(path.end), {}
    workspace_id = await deployment.create(DesiredState.STANDBY)
    await deployment.wake(workspace_id)
    await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
    deployment.fill_home(workspace_id)
    before = deployment.describe_home(workspace_id)
    if path.begin is not DesiredState.STANDBY:
        await deployment.move_to(workspace_id, path.begin)
    return workspace_id, before


async def request_end(deployment: Deployment, path: OperationPath, workspace_id: WorkspaceId) -> None:
    if path.end is DesiredState.DELETED:
        await deployment.delete(workspace_id, purge=True)
    elif path.begin is not None:
        await deployment.want(workspace_id, path.end)
    await deployment.wake(workspace_id)


async def check_what_counts_as_complete(deployment: Deployment, path: OperationPath, trial: Trial) -> None:
    """Assert right after the crash that the row alone leads to the home, as for a person's recover.

    The next worker continues, so a later check would not notice.
    """
    snapshot = await deployment.look(trial.workspace_id)
    complete = snapshot.archive_key is None or snapshot.restore_marker == snapshot.archive_key
    if trial.before and complete and path.end is not DesiredState.DELETED:
        home = deployment.home(trial.workspace_id)
        assert home.exists(), f"{trial}: the row says that there is a home, and there is none"
        assert deployment.describe_home(trial.workspace_id) == trial.before, (
            f"{trial}: the row calls half a home complete"
        )


async def check(deployment: Deployment, path: OperationPath, trial: Trial) -> None:
    workspace_id, home = trial.workspace_id, deployment.home(trial.workspace_id)
    snapshot = await deployment.look(workspace_id)
    assert (snapshot.error_reason, snapshot.error_count) == (None, 0), f"{trial}: {snapshot.error_message}"
    if path.end is DesiredState.DELETED:
        assert not home.exists(), f"{trial}: the home of a deleted workspace is still there"
        return
    if path.end is DesiredState.ARCHIVED:
        assert not home.exists(), f"{trial}: the home of an archived workspace is still there"
        await deployment.move_to(workspace_id, DesiredState.STANDBY)
    if trial.before:
        assert deployment.describe_home(workspace_id) == trial.before, f"{trial}: the home is not the same"
    await deployment.move_to(workspace_id, DesiredState.ARCHIVED)
