"""Changes that people make with Docker's own commands are repaired, or end in a clear error."""

from pathlib import Path

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from codehub.domain.states import DesiredState, ErrorReason, Phase
from testkit.deployment import Deployment, Servers
from testkit.docker_engine import docker
from testkit.trees import describe_tree, make_rich_home
from testkit.waiting import until
from tests.docker.harness import container_id, open_docker_deployment

SWEEP_OFTEN = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "2"}
SWEEP_NEVER = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "86400"}


async def start_workspace(deployment: Deployment) -> WorkspaceId:
    workspace_id = await deployment.create(DesiredState.STANDBY)
    await deployment.wake(workspace_id)
    await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
    make_rich_home(deployment.home(workspace_id))
    await deployment.move_to(workspace_id, DesiredState.RUNNING)
    return workspace_id


async def until_replaced(deployment: Deployment, workspace_id: WorkspaceId, old: str) -> None:
    """Wait until it runs again, with another container than before."""

    async def replaced() -> bool:
        names = docker("ps", "--no-trunc", "--format", "{{.Names}} {{.ID}}").splitlines()
        return any(each.startswith(container_name(workspace_id)) and not each.endswith(old) for each in names)

    await until(replaced, "another container")
    await deployment.wait_for_phase(workspace_id, Phase.RUNNING)


@pytest.mark.timeout(600)
async def test_a_removed_container_is_recreated_with_its_home(servers: Servers, tmp_path: Path) -> None:
    async with open_docker_deployment(servers, tmp_path, **SWEEP_OFTEN) as deployment:
        with deployment.worker_process():
            workspace_id = await start_workspace(deployment)
            before, old = describe_tree(deployment.home(workspace_id)), container_id(workspace_id)
            docker("rm", "--force", container_name(workspace_id))
            await until_replaced(deployment, workspace_id, old)
            assert describe_tree(deployment.home(workspace_id)) == before


@pytest.mark.timeout(600)
async def test_a_killed_container_runs_again_without_waiting_for_the_sweep(
    servers: Servers, tmp_path: Path
) -> None:
    async with open_docker_deployment(servers, tmp_path, **SWEEP_NEVER) as deployment:
        with deployment.worker_process():
            workspace_id = await start_workspace(deployment)
            before = describe_tree(deployment.home(workspace_id))
            docker("kill", container_name(workspace_id))
            await until_running(workspace_id)
            await deployment.wait_for_phase(workspace_id, Phase.RUNNING)
            assert describe_tree(deployment.home(workspace_id)) == before


async def until_running(workspace_id: WorkspaceId) -> None:
    async def running() -> bool:
        names = docker("ps", "--filter", "status=running", "--format", "{{.Names}}").split()
        return container_name(workspace_id) in names

    await until(running, "it runs again")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("desired", [DesiredState.STANDBY, DesiredState.RUNNING])
async def test_a_removed_volume_is_lost_data_and_not_an_empty_home(
    desired: DesiredState, servers: Servers, tmp_path: Path
) -> None:
    async with open_docker_deployment(servers, tmp_path, **SWEEP_OFTEN) as deployment:
        with deployment.worker_process():
            workspace_id = await start_workspace(deployment)
            if desired is DesiredState.STANDBY:
                await deployment.move_to(workspace_id, desired)
            else:
                docker("rm", "--force", container_name(workspace_id))
            await remove_volume(workspace_id)

            async def is_lost() -> bool:
                return (await deployment.look(workspace_id)).phase is Phase.ERROR

            await until(is_lost, "an error")
            assert (await deployment.look(workspace_id)).error_reason is ErrorReason.DATA_LOST
            assert container_name(workspace_id) not in docker("ps", "--format", "{{.Names}}").split()
            assert volume_name(workspace_id) not in docker("volume", "ls", "--quiet").split()


async def remove_volume(workspace_id: WorkspaceId) -> None:
    """Remove the volume while the control plane quickly recreates the container."""

    async def removed() -> bool:
        names = docker("ps", "--all", "--format", "{{.Names}}").split()
        if container_name(workspace_id) in names:
            docker("rm", "--force", container_name(workspace_id))
        try:
            docker("volume", "rm", volume_name(workspace_id))
        except AssertionError:
            return False
        return True

    await until(removed, "the volume is removed")
