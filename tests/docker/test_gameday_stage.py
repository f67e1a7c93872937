"""A game day stage with the Docker backend."""

from pathlib import Path

from gameday.stage.stage import open_stage
from testkit.docker_engine import docker
from tests.gameday.players import new_workspace


async def test_everything_belongs_to_the_project_and_is_removed_with_it(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "local-docker", users=1) as stage:
        mine = f"label=codehub.io/project={stage.settings.docker.project}"
        async with new_workspace(stage) as player:
            await player.reach("RUNNING")
            [name] = await stage.instances(player.workspace_id)
            assert docker("ps", "--filter", mine, "--format", "{{.Names}}") == name
            assert (await stage.home(player.workspace_id)).is_dir()
            await stage.backend.kill_instance(name)
            await stage.backend.remove_instance(name)
            assert name not in await stage.instances(player.workspace_id)
            await player.reach("RUNNING")
    assert docker("ps", "--all", "--quiet", "--filter", mine) == ""
    assert docker("volume", "ls", "--quiet", "--filter", mine) == ""
    assert docker("images", "--quiet", stage.settings.workspaces.default_image_ref) == ""
    assert docker("network", "ls", "--quiet", "--filter", f"name={stage.settings.docker.network}") == ""
