"""Homes of M1 become Docker volumes, unless M1 still uses them or the volume already exists."""

from pathlib import Path

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from codehub.domain.states import Phase
from testkit.deployment import Deployment, Servers
from testkit.docker_engine import docker
from testkit.rows import add_workspace, new_workspace_id
from testkit.trees import describe_tree, make_rich_home
from tests.codehub_command import run_codehub
from tests.docker.harness import open_docker_deployment

COMPLETE = {"storage.volume_ready": {"status": "True", "reason": "Complete", "message": ""}}


async def add_m1_workspace(deployment: Deployment, directory: Path) -> WorkspaceId:
    """Create a stopped workspace of M1 with its home, as it was migrated."""
    workspace_id = new_workspace_id()
    key = f"users/{deployment.owner}/workspaces/{workspace_id}/home"
    (directory / key).parent.mkdir(parents=True)
    make_rich_home(directory / key)
    async with deployment.database.transaction() as session:
        await add_workspace(
            session,
            deployment.owner,
            id=workspace_id,
            instance_backend="local-docker",
            storage_backend="local-dir",
            home_store_key=key,
            image_ref=deployment.image_ref,
            phase="STANDBY",
            desired_state="STANDBY",
            conditions=COMPLETE,
        )
    return workspace_id


async def import_homes(deployment: Deployment, directory: Path) -> str:
    return (await run_codehub(deployment.environment, "migrate", "--import-homes", str(directory))).output


@pytest.mark.timeout(600)
async def test_a_home_of_m1_becomes_a_volume(servers: Servers, tmp_path: Path) -> None:
    async with open_docker_deployment(servers, tmp_path / "data") as deployment:
        workspace_id = await add_m1_workspace(deployment, tmp_path / "m1")
        [home] = (tmp_path / "m1").glob("users/*/workspaces/*/home")
        before = describe_tree(home)
        assert "Imported 1 home; none is left." in await import_homes(deployment, tmp_path / "m1")
        async with deployment.worker():
            await deployment.wake(workspace_id)
            await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
            assert describe_tree(deployment.home(workspace_id)) == before
        assert describe_tree(home) == before


@pytest.mark.timeout(600)
async def test_an_existing_volume_is_left_alone(servers: Servers, tmp_path: Path) -> None:
    async with open_docker_deployment(servers, tmp_path / "data") as deployment:
        workspace_id = await add_m1_workspace(deployment, tmp_path / "m1")
        container, volume = container_name(workspace_id), volume_name(workspace_id)
        # M1 did not use these labels.
        docker("create", "--name", container, deployment.image_ref)
        try:
            assert f"its container {container} still exists" in await import_homes(
                deployment, tmp_path / "m1"
            )
        finally:
            docker("rm", container)
        project = f"codehub.io/project={deployment.settings.docker.project}"
        labels = ("--label", project, "--label", f"codehub.io/workspace-id={workspace_id}")
        docker("volume", "create", *labels, volume)
        assert f"there is already a volume {volume}" in await import_homes(deployment, tmp_path / "m1")
        docker("volume", "rm", volume)
        assert "Imported 1 home; none is left." in await import_homes(deployment, tmp_path / "m1")
