"""Every fault breaks something, and heals it when it ends or is cancelled."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from functools import partial
from random import Random

import psutil
import pytest
from sqlalchemy import text

from gameday.faults.catalog import weighted_faults
from gameday.faults.fault import Fault, FaultRecord, NothingToBreak
from gameday.faults.loop import inject_faults, run_fault
from gameday.faults.modes import PASS_THROUGH, CutConnections, Down, ErrorResponses, Mode, Slow, Stalled
from gameday.stage.stage import WORKERS, Stage
from testkit.needs import do_without_mounts
from testkit.waiting import until
from tests.gameday.players import new_workspace

pytestmark = pytest.mark.timeout(900)

ELECTED_RELAY = text(
    "SELECT pid FROM pg_stat_activity JOIN pg_locks USING (pid) "
    "WHERE application_name = 'codehub-relay' AND locktype = 'advisory' AND granted"
)
PARTS = ("worker", "worker-2", "api", "proxy", "egress", "postgres", "redis", "s3", "temporal")
S3_MODES = {
    "s3-500": ErrorResponses,
    "s3-503": ErrorResponses,
    "s3-slow": Slow,
    "s3-cut": CutConnections,
    "s3-stalled": Stalled,
}


def seeded(seed: int | str) -> Random:
    return Random(seed)  # noqa: S311 (no secret)


def fault(stage: Stage, kind: str) -> Fault:
    return next(each for _, each in weighted_faults(stage, dockerd=True) if each.kind == kind)


@contextlib.asynccontextmanager
async def running(stage: Stage, kind: str) -> AsyncIterator[asyncio.Task[str]]:
    """Run a fault during the block and cancel it, as at the end of a game."""

    async def run() -> str:
        return await fault(stage, kind).run(seeded(1))

    task = asyncio.create_task(run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("part", PARTS)
async def test_a_killed_part_restarts_as_another_process(stage: Stage, part: str) -> None:
    await stage.wait_ready()
    before = stage.pid(part)
    description = await fault(stage, f"kill-{part}").run(seeded(1))
    assert description == f"kill -9 of {part} ({before})"
    await stage.wait_ready()
    assert stage.pid(part) not in {None, before}


@pytest.mark.parametrize("part", PARTS)
async def test_a_stopped_part_continues_when_the_fault_is_cancelled(stage: Stage, part: str) -> None:
    await stage.wait_ready()
    process = psutil.Process(stage.pid(part))

    async def is_stopped() -> bool:
        return process.status() == psutil.STATUS_STOPPED

    async with running(stage, f"stop-{part}"):
        await until(is_stopped, f"{part} is stopped")
        with pytest.raises(NothingToBreak):
            await fault(stage, f"stop-{part}").run(seeded(2))
    family = [process, *process.children(recursive=True)]

    async def continues() -> bool:
        return all(each.status() != psutil.STATUS_STOPPED for each in family if each.is_running())

    await until(continues, f"{part} continues")


@pytest.mark.parametrize("kind", S3_MODES)
async def test_s3_works_again_after_each_fault(stage: Stage, kind: str) -> None:
    mode: Mode = PASS_THROUGH

    async def is_disturbed() -> bool:
        nonlocal mode
        mode = stage.s3.mode
        return mode != PASS_THROUGH

    async with running(stage, kind):
        await until(is_disturbed, "S3 is disturbed")
    assert isinstance(mode, S3_MODES[kind])
    assert stage.s3.mode == PASS_THROUGH


async def test_the_disk_of_the_homes_is_full_and_then_free_again(stage: Stage) -> None:
    if (disk := stage.disk) is None:
        do_without_mounts()

    async def is_full() -> bool:
        return disk.is_full()

    async with running(stage, "disk-full"):
        await until(is_full, "the disk is full")
        with pytest.raises(NothingToBreak):
            await fault(stage, "disk-full").run(seeded(2))
    assert not disk.is_full()


async def test_workers_refuse_another_disk_and_no_home_counts_as_lost(stage: Stage) -> None:
    if (disk := stage.disk) is None:
        do_without_mounts()
    await stage.wait_ready()
    async with new_workspace(stage) as player:
        await player.reach("STANDBY")
        ((await stage.home(player.workspace_id)) / "kept").write_bytes(b"kept")

        async def is_refused() -> bool:
            notes = (each.note for each in stage.stack.statuses if each.name in WORKERS)
            return disk.is_swapped() and any("exit code 2" in note for note in notes)

        async with running(stage, "swap-homes"):
            await until(is_refused, "a worker refuses to start")
            for kind in ("swap-homes", "disk-full"):
                with pytest.raises(NothingToBreak):
                    await fault(stage, kind).run(seeded(2))
        assert not disk.is_swapped()
        await stage.wait_ready()
        await player.reach("ARCHIVED")
        await player.reach("STANDBY")
        assert ((await stage.home(player.workspace_id)) / "kept").read_bytes() == b"kept"


async def test_a_worker_is_stopped_during_an_observation(stage: Stage) -> None:
    await stage.wait_ready()
    async with new_workspace(stage) as player:
        await player.reach("ARCHIVED")
        waking = asyncio.create_task(player.reach("STANDBY"))
        async with running(stage, "pause-observation"):

            async def is_stopped() -> bool:
                processes = [psutil.Process(stage.pid(name)) for name in WORKERS]
                return any(each.status() == psutil.STATUS_STOPPED for each in processes)

            await until(is_stopped, "a worker is stopped")
            assert stage.s3.mode == PASS_THROUGH
        await waking


async def test_workspaces_on_disk_can_be_used_while_s3_is_down(stage: Stage) -> None:
    await stage.wait_ready()
    async with new_workspace(stage) as player:
        await player.reach("STANDBY")
        ((await stage.home(player.workspace_id)) / "big").write_bytes(os.urandom(5_000_000))
        # Otherwise the job ends before the fault finds it.
        with stage.s3.inject(Slow(bytes_per_second=100_000)):
            await player.request("ARCHIVED")
            async with running(stage, "s3-down"):

                async def is_down() -> bool:
                    return isinstance(stage.s3.mode, Down)

                await until(is_down, "S3 is down")
                with pytest.raises(NothingToBreak):
                    await fault(stage, "s3-500").run(seeded(2))
                await player.reach("RUNNING")
                await player.reach("STANDBY")
                assert await is_down()


async def test_another_relay_is_elected_when_the_leader_loses_its_session(stage: Stage) -> None:
    await stage.wait_ready()

    async def elected() -> int | None:
        async with stage.database.transaction() as session:
            found: int | None = await session.scalar(ELECTED_RELAY)
            return found

    async def is_elected() -> bool:
        return await elected() is not None

    await until(is_elected, "a relay is elected")
    before = await elected()
    await fault(stage, "end-relay-session").run(seeded(1))

    async def another() -> bool:
        return await elected() not in {None, before}

    await until(another, "another session is elected")


async def test_a_killed_ide_restarts(stage: Stage) -> None:
    await stage.wait_ready()
    async with new_workspace(stage) as player:
        await player.reach("RUNNING")
        before = await stage.instances(player.workspace_id)
        description = await fault(stage, "kill-ide").run(seeded(1))
        assert player.workspace_id in description
        await player.reach("RUNNING")

        async def another() -> bool:
            now = await stage.instances(player.workspace_id)
            return len(now) == 1 and now != before

        await until(another, "another IDE runs")


async def test_a_killed_storage_job_is_repeated_and_nothing_is_lost(stage: Stage) -> None:
    await stage.wait_ready()
    async with new_workspace(stage) as player:
        await player.reach("STANDBY")
        content = os.urandom(5_000_000)
        ((await stage.home(player.workspace_id)) / "big").write_bytes(content)
        # Otherwise the job ends before the fault finds it.
        with stage.s3.inject(Slow(bytes_per_second=100_000)):
            await player.request("ARCHIVED")
            description = await fault(stage, "kill-job").run(seeded(1))
        assert description.startswith("kill -9 of the storage job")
        await player.reach("ARCHIVED")
        await player.reach("STANDBY")
        assert ((await stage.home(player.workspace_id)) / "big").read_bytes() == content


async def test_a_storage_job_notices_that_its_tar_was_killed_and_nothing_is_lost(stage: Stage) -> None:
    await stage.wait_ready()
    async with new_workspace(stage) as player:
        await player.reach("STANDBY")
        content = os.urandom(100_000_000)
        ((await stage.home(player.workspace_id)) / "big").write_bytes(content)
        # More than the pipe, the compressor and the upload parts hold, so that tar waits.
        with stage.s3.inject(Slow(bytes_per_second=100_000)):
            await player.request("ARCHIVED")
            description = await fault(stage, "kill-tar").run(seeded(1))
        assert description.startswith("kill -9 of the tar process")

        async def has_failed() -> bool:
            return (await player.read())["error"] is not None

        await until(has_failed, "the job has noticed")
        await player.reach("ARCHIVED")
        await player.reach("STANDBY")
        assert ((await stage.home(player.workspace_id)) / "big").read_bytes() == content


async def test_there_is_nothing_to_break_without_an_ide_or_a_job(stage: Stage) -> None:
    async def nothing_runs() -> bool:
        return not await stage.all_instances() and not await stage.jobs()

    await until(nothing_runs, "the instances and jobs of other tests have ended")
    for kind in ("kill-ide", "kill-job", "kill-tar"):
        with pytest.raises(NothingToBreak):
            await fault(stage, kind).run(seeded(1))


async def inject_until(stage: Stage, count: int, seed: str) -> list[FaultRecord]:
    records: list[FaultRecord] = []
    enough = asyncio.Event()

    def add(record: FaultRecord) -> None:
        records.append(record)
        if len(records) >= count:
            enough.set()

    await inject_faults(stage, seeded(seed), enough, add, per_second=20)
    return sorted(records, key=lambda record: record.at)


async def test_the_seed_decides_which_faults_happen_and_nothing_stays_broken(stage: Stage) -> None:
    runs = []
    for _ in range(2):
        await stage.wait_ready()
        records = await inject_until(stage, 8, "7:faults")
        assert any(record.happened for record in records)
        runs.append([record.kind for record in records])
        assert stage.s3.mode == PASS_THROUGH
        assert stage.disk is None or not stage.disk.is_full()
        await stage.wait_ready()
    shorter = min(map(len, runs))
    assert runs[0][:shorter] == runs[1][:shorter]


@pytest.mark.parametrize("waits", [True, False])
async def test_a_fault_happened_if_it_broke_something(waits: bool, stage: Stage) -> None:
    async def break_it(_: Random) -> str:
        return "broken"

    async def find_nothing(_: Random) -> str:
        raise NothingToBreak("nothing there")

    records: list[FaultRecord] = []
    for run in (break_it, find_nothing):
        await run_fault(stage, Fault("test", run, waits=waits), seeded(1), records.append)
    assert [(each.what, each.happened) for each in records] == [("broken", True), ("nothing there", False)]


async def test_the_docker_engine_is_left_alone_with_the_local_backend(stage: Stage) -> None:
    assert "restart-dockerd" not in {each.kind for _, each in weighted_faults(stage, dockerd=True)}


async def test_no_fault_begins_during_a_pause(stage: Stage) -> None:
    await stage.wait_ready()
    records: list[FaultRecord] = []
    stop = asyncio.Event()
    with stage.fault_pause.hold():
        injecting = asyncio.create_task(
            inject_faults(stage, seeded(1), stop, records.append, per_second=1000)
        )
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(injecting), 0.5)
        assert records == []
    await until(partial(_has_any, records), "a fault begins after the pause")
    stop.set()
    await injecting
    await stage.wait_ready()


async def _has_any(records: list[FaultRecord]) -> bool:
    return bool(records)
