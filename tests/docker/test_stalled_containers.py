"""A container that stalls after its limits were changed keeps running; they apply at the next start."""

from pathlib import Path

import pytest

from codehub.domain.conditions import Status, WorkspaceId
from codehub.domain.naming import container_name
from codehub.domain.states import DesiredState, Phase
from testkit.deployment import Deployment, Servers
from testkit.docker_engine import docker
from testkit.waiting import until
from tests.docker.harness import container_id, open_docker_deployment

SWEEP_OFTEN = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "2"}
NEW_LIMITS = {"CODEHUB_DOCKER_PIDS": "99", "CODEHUB_DOCKER_MEMORY_BYTES": str(256 * 1024 * 1024)}


async def until_reported(deployment: Deployment, workspace_id: WorkspaceId, sentence: str | None) -> None:
    async def reported() -> bool:
        return (await deployment.look(workspace_id)).conditions.restart_to_apply == sentence

    await until(reported, str(sentence))


@pytest.mark.timeout(600)
async def test_a_stalled_container_is_not_recreated_for_its_limits(servers: Servers, tmp_path: Path) -> None:
    async with open_docker_deployment(servers, tmp_path, **SWEEP_OFTEN) as deployment:
        with deployment.worker_process():
            workspace_id = await deployment.create(DesiredState.RUNNING)
            await deployment.wake(workspace_id)
            await deployment.wait_for_phase(workspace_id, Phase.RUNNING)
            before = container_id(workspace_id)
        with deployment.worker_process(**NEW_LIMITS):
            await until_reported(deployment, workspace_id, "Restart to apply: memory, processes.")
            docker("pause", container_name(workspace_id))
            await deployment.wait_until_answers(workspace_id, Status.FALSE)
            assert (await deployment.look(workspace_id)).phase is Phase.RUNNING
            docker("unpause", container_name(workspace_id))
            await deployment.wait_until_answers(workspace_id, Status.TRUE)
            assert (await deployment.look(workspace_id)).phase is Phase.RUNNING
            assert container_id(workspace_id) == before
            await deployment.move_to(workspace_id, DesiredState.STANDBY)
            await deployment.move_to(workspace_id, DesiredState.RUNNING)
            await until_reported(deployment, workspace_id, None)
            assert container_id(workspace_id) != before
