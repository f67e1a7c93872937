"""An IDE that stalls for a moment is left alone by a real worker."""

import os
import signal
from pathlib import Path

import pytest

from codehub.adapters.local.processes import find_processes
from codehub.adapters.local.root import LocalRoot
from codehub.domain.conditions import Status, WorkspaceId
from codehub.domain.states import DesiredState, Phase
from codehub.providers import local_root_of
from testkit.deployment import Deployment, Servers, open_deployment

SWEEP_OFTEN = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "1"}


async def start_workspace(deployment: Deployment) -> WorkspaceId:
    workspace_id = await deployment.create(DesiredState.RUNNING)
    await deployment.wake(workspace_id)
    await deployment.wait_for_phase(workspace_id, Phase.RUNNING)
    return workspace_id


def processes_of(deployment: Deployment, workspace_id: WorkspaceId) -> set[int]:
    marker = LocalRoot.at(local_root_of(deployment.settings)).marker(workspace_id)
    return {member.pid for member in find_processes(marker)}


def signal_all(processes: set[int], number: signal.Signals) -> None:
    for pid in processes:
        os.kill(pid, number)


@pytest.mark.timeout(600)
async def test_an_ide_that_stalls_for_a_moment_keeps_running(servers: Servers, tmp_path: Path) -> None:
    async with open_deployment(servers, tmp_path, **SWEEP_OFTEN) as deployment:
        with deployment.worker_process():
            workspace_id = await start_workspace(deployment)
            before, ready = (
                processes_of(deployment, workspace_id),
                (await deployment.look(workspace_id)).conditions,
            )
            signal_all(before, signal.SIGSTOP)
            try:
                await deployment.wait_until_answers(workspace_id, Status.FALSE)
                assert (await deployment.look(workspace_id)).phase is Phase.RUNNING
            finally:
                signal_all(before, signal.SIGCONT)
            await deployment.wait_until_answers(workspace_id, Status.TRUE)
            after = await deployment.look(workspace_id)
            assert after.phase is Phase.RUNNING
            # It did not count as stopped in between.
            assert after.conditions.container_ready == ready.container_ready
            assert processes_of(deployment, workspace_id) == before
            await deployment.move_to(workspace_id, DesiredState.STANDBY)
