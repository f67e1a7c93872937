"""The stage: a whole CodeHub that can be looked at from behind, and of which nothing stays."""

from pathlib import Path

import httpx
import pytest

from codehub.adapters.s3.archives import S3Archives
from codehub.domain.naming import ARCHIVE_ROOT
from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import is_locked
from gameday.stage.local import OwnProcesses
from gameday.stage.stage import Stage, open_stage
from testkit.waiting import until
from tests.gameday.players import playing

pytestmark = pytest.mark.timeout(900)


async def test_its_people_come_in_with_a_token_and_with_a_password(stage: Stage) -> None:
    async with httpx.AsyncClient(base_url=stage.url) as client:
        for user in stage.users:
            bearer = {"Authorization": f"Bearer {user.token}"}
            who = await client.get("/api/v1/session", headers=bearer)
            assert (who.status_code, who.json()["user"]["username"]) == (200, user.name)
            form = {"username": user.name, "password": user.password}
            assert (await client.post("/api/v1/login", json=form)).status_code == 200


async def test_it_has_two_workers_and_knows_the_process_of_each_part(stage: Stage) -> None:
    assert {"worker", "worker-2", "api", "proxy", "postgres", "redis", "s3", "temporal"} == set(stage.parts)
    pids = {stage.pid(name) for name in stage.parts}
    assert None not in pids
    assert len(pids) == len(stage.parts)


async def test_it_sees_what_really_runs_for_a_workspace(stage: Stage) -> None:
    async with playing(stage) as player:
        await player.go("RUNNING")
        [instance] = await stage.instances(player.workspace_id)
        assert (await stage.all_instances())[player.workspace_id] == [instance]
        assert player.workspace_id in await stage.volumes()
        assert stage.home(player.workspace_id).is_dir()
        await player.go("STANDBY")
        assert await stage.instances(player.workspace_id) == []
        assert player.workspace_id in await stage.volumes()


async def test_archives_go_through_the_fault_proxy_into_the_real_store(stage: Stage) -> None:
    before = stage.s3.counts["connections"]
    async with playing(stage) as player:
        await player.go("ARCHIVED")
        assert stage.s3.counts["connections"] > before
        assert str(stage.s3.port) not in str(stage.store.endpoint_url)
        async with S3Archives.open(stage.store) as archives:
            keys = [each.key async for each in archives.list_all()]
        assert any(key.startswith(f"{ARCHIVE_ROOT}{player.workspace_id}/") for key in keys)
        assert player.workspace_id not in await stage.volumes()


async def test_it_tells_how_long_a_killed_part_was_away(stage: Stage) -> None:
    known = len(stage.recoveries)
    pid = stage.pid("redis")
    await stage.stack.kill("redis")
    await stage.wait_ready()
    [recovery] = stage.recoveries[known:]
    assert (recovery.name, stage.away()) == ("redis", [])
    assert 0 < recovery.seconds <= stage.clock()
    assert stage.pid("redis") != pid


async def test_nothing_outlives_it(tmp_path: Path) -> None:
    async with open_stage(tmp_path / "stage", "local", users=1) as stage, playing(stage) as player:
        await player.go("RUNNING")
        programs = OwnProcesses(tmp_path / "stage" / "ide" / "bin")
        assert programs.instances()

    async def ended() -> bool:
        return not programs.instances() and not programs.jobs()

    await until(ended, "all processes have ended")
    assert not (tmp_path / "stage" / "local").is_mount()
    assert not is_locked(DataDir(tmp_path / "stage"))
