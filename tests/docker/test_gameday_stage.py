"""The stage of a game day whose workspaces are containers."""

from pathlib import Path

from gameday.stage.stage import open_stage
from testkit.docker_engine import docker
from tests.gameday.players import playing


async def test_with_docker_everything_is_a_container_of_its_project(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "local-docker", users=1) as stage:
        mine = f"label=codehub.io/project={stage.settings.docker.project}"
        async with playing(stage) as player:
            await player.go("RUNNING")
            [name] = await stage.instances(player.workspace_id)
            assert docker("ps", "--filter", mine, "--format", "{{.Names}}") == name
            assert stage.home(player.workspace_id).is_dir()
            await stage.ground.kill_instance(name)
            await stage.ground.remove_instance(name)
            assert name not in await stage.instances(player.workspace_id)
            await player.go("RUNNING")
    assert docker("ps", "--all", "--quiet", "--filter", mine) == ""
    assert docker("volume", "ls", "--quiet", "--filter", mine) == ""
    assert docker("images", "--quiet", stage.settings.workspaces.default_image_ref) == ""
    assert docker("network", "ls", "--quiet", "--filter", f"name={stage.settings.docker.network}") == ""
