"""The stage: a complete CodeHub that leaves nothing behind."""

from pathlib import Path

import httpx
import pytest

from codehub.adapters.s3.archives import S3Archives
from codehub.domain.naming import ARCHIVE_ROOT
from codehub.embedded.data_dir import DataDir
from codehub.embedded.state import is_locked
from gameday.stage.local import StageProcesses
from gameday.stage.stage import Stage, open_stage
from testkit.waiting import DEADLINE_SECONDS, until
from tests.gameday.players import new_workspace

pytestmark = pytest.mark.timeout(900)


async def test_users_sign_in_with_a_token_and_with_a_password(stage: Stage) -> None:
    async with httpx.AsyncClient(base_url=stage.url, timeout=DEADLINE_SECONDS) as client:
        for user in stage.users:
            bearer = {"Authorization": f"Bearer {user.token}"}
            session = await client.get("/api/v1/session", headers=bearer)
            assert (session.status_code, session.json()["user"]["username"]) == (200, user.name)
            form = {"username": user.name, "password": user.password}
            assert (await client.post("/api/v1/login", json=form)).status_code == 200


async def test_it_has_two_workers_and_knows_the_pid_of_each_part(stage: Stage) -> None:
    servers = {"postgres", "redis", "s3", "temporal"}
    assert {"worker", "worker-2", "api", "proxy", "egress"} | servers == set(stage.parts)
    pids = {stage.pid(name) for name in stage.parts}
    assert None not in pids
    assert len(pids) == len(stage.parts)


async def test_it_observes_instances_and_volumes_directly(stage: Stage) -> None:
    async with new_workspace(stage) as player:
        await player.reach("RUNNING")
        [instance] = await stage.instances(player.workspace_id)
        assert (await stage.all_instances())[player.workspace_id] == [instance]
        assert player.workspace_id in await stage.volumes()
        assert (await stage.home(player.workspace_id)).is_dir()
        await player.reach("STANDBY")
        assert await stage.instances(player.workspace_id) == []
        assert player.workspace_id in await stage.volumes()


async def test_archives_reach_the_store_through_the_fault_proxy(stage: Stage) -> None:
    before = stage.s3.counts["connections"]
    async with new_workspace(stage) as player:
        await player.reach("ARCHIVED")
        assert stage.s3.counts["connections"] > before
        assert str(stage.s3.port) not in str(stage.store.endpoint_url)
        async with S3Archives.open(stage.store) as archives:
            keys = [each.key async for each in archives.list_all()]
        assert any(key.startswith(f"{ARCHIVE_ROOT}{player.workspace_id}/") for key in keys)
        assert player.workspace_id not in await stage.volumes()


async def test_it_measures_how_long_a_killed_part_was_unavailable(stage: Stage) -> None:
    before = len(stage.recoveries)
    pid = stage.pid("redis")
    await stage.stack.kill("redis")
    await stage.wait_ready()
    [recovery] = stage.recoveries[before:]
    assert (recovery.name, stage.unavailable()) == ("redis", [])
    assert 0 < recovery.seconds <= stage.clock()
    assert stage.pid("redis") != pid


async def test_no_process_or_mount_outlives_it(tmp_path: Path) -> None:
    async with open_stage(tmp_path / "stage", "local", users=1) as stage, new_workspace(stage) as player:
        await player.reach("RUNNING")
        processes = StageProcesses(tmp_path / "stage" / "ide" / "bin")
        assert processes.instances()

    async def ended() -> bool:
        return not processes.instances() and not processes.jobs()

    await until(ended, "all processes have ended")
    assert not (tmp_path / "stage" / "local").is_mount()
    assert not is_locked(DataDir(tmp_path / "stage"))
