"""Every kind of fault really breaks something, and leaves nothing broken when it ends or is cut short."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from functools import partial
from random import Random

import psutil
import pytest
from sqlalchemy import text

from gameday.faults.catalog import Fault, faults_of
from gameday.faults.fault import NothingToBreak
from gameday.faults.loop import FaultRecord, break_things, run_fault
from gameday.faults.modes import PASSING, Answering, Away, Cutting, Mode, Silent, Slow
from gameday.stage.stage import WORKERS, Stage
from testkit.needs import do_without_mounts
from testkit.waiting import until
from tests.gameday.players import playing

pytestmark = pytest.mark.timeout(900)

ELECTED_RELAY = text(
    "SELECT pid FROM pg_stat_activity JOIN pg_locks USING (pid) "
    "WHERE application_name = 'codehub-relay' AND locktype = 'advisory' AND granted"
)
PARTS = ("worker", "worker-2", "api", "proxy", "postgres", "redis", "s3", "temporal")
S3_MODES = {"s3-500": Answering, "s3-503": Answering, "s3-slow": Slow, "s3-cut": Cutting, "s3-silent": Silent}


def chance(seed: int | str) -> Random:
    return Random(seed)  # noqa: S311 (nothing secret about it)


def fault(stage: Stage, kind: str) -> Fault:
    return next(each for _, each in faults_of(stage, dockerd=True) if each.kind == kind)


@contextlib.asynccontextmanager
async def going_on(stage: Stage, kind: str) -> AsyncIterator[asyncio.Task[str]]:
    """It is cut short at the end of the block, as at the end of a game."""

    async def run() -> str:
        return await fault(stage, kind).run(chance(1))

    task = asyncio.create_task(run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("part", PARTS)
async def test_a_killed_part_comes_back_as_another_process(stage: Stage, part: str) -> None:
    await stage.wait_ready()
    before = stage.pid(part)
    said = await fault(stage, f"kill-{part}").run(chance(1))
    assert said == f"kill -9 of {part} ({before})"
    await stage.wait_ready()
    assert stage.pid(part) not in {None, before}


@pytest.mark.parametrize("part", PARTS)
async def test_a_stopped_part_goes_on_even_when_the_fault_is_cut_short(stage: Stage, part: str) -> None:
    await stage.wait_ready()
    process = psutil.Process(stage.pid(part))

    async def is_stopped() -> bool:
        return process.status() == psutil.STATUS_STOPPED

    async with going_on(stage, f"stop-{part}"):
        await until(is_stopped, f"{part} is stopped")
        with pytest.raises(NothingToBreak):
            await fault(stage, f"stop-{part}").run(chance(2))
    family = [process, *process.children(recursive=True)]

    async def goes_on() -> bool:
        return all(each.status() != psutil.STATUS_STOPPED for each in family if each.is_running())

    await until(goes_on, f"{part} goes on")


@pytest.mark.parametrize("kind", S3_MODES)
async def test_s3_is_well_again_after_each_trouble(stage: Stage, kind: str) -> None:
    mode: Mode = PASSING

    async def is_troubled() -> bool:
        nonlocal mode
        mode = stage.s3.mode
        return mode != PASSING

    async with going_on(stage, kind):
        await until(is_troubled, "S3 is troubled")
    assert isinstance(mode, S3_MODES[kind])
    assert stage.s3.mode == PASSING


async def test_the_disk_of_the_homes_is_full_and_then_free(stage: Stage) -> None:
    if (disk := stage.disk) is None:
        do_without_mounts()

    async def is_full() -> bool:
        return disk.is_full()

    async with going_on(stage, "disk-full"):
        await until(is_full, "the disk is full")
        with pytest.raises(NothingToBreak):
            await fault(stage, "disk-full").run(chance(2))
    assert not disk.is_full()


async def test_another_disk_under_the_homes_is_refused_and_no_home_counts_as_lost(stage: Stage) -> None:
    if (disk := stage.disk) is None:
        do_without_mounts()
    await stage.wait_ready()
    async with playing(stage) as player:
        await player.go("STANDBY")
        (stage.home(player.workspace_id) / "kept").write_bytes(b"kept")

        async def is_refused() -> bool:
            notes = (each.note for each in stage.stack.statuses if each.name in WORKERS)
            return disk.is_exchanged() and any("exit code 2" in note for note in notes)

        async with going_on(stage, "exchange-homes"):
            await until(is_refused, "a worker is refused")
            for kind in ("exchange-homes", "disk-full"):
                with pytest.raises(NothingToBreak):
                    await fault(stage, kind).run(chance(2))
        assert not disk.is_exchanged()
        await stage.wait_ready()
        await player.go("ARCHIVED")
        await player.go("STANDBY")
        assert (stage.home(player.workspace_id) / "kept").read_bytes() == b"kept"


async def test_a_worker_is_stopped_in_the_middle_of_a_look(stage: Stage) -> None:
    await stage.wait_ready()
    async with playing(stage) as player:
        await player.go("ARCHIVED")
        waking = asyncio.create_task(player.go("STANDBY"))
        async with going_on(stage, "pause-look"):

            async def is_stopped() -> bool:
                processes = [psutil.Process(stage.pid(name)) for name in WORKERS]
                return any(each.status() == psutil.STATUS_STOPPED for each in processes)

            await until(is_stopped, "a worker is stopped")
            assert stage.s3.mode == PASSING
        await waking


async def test_while_s3_is_away_people_get_to_what_is_on_the_disk(stage: Stage) -> None:
    await stage.wait_ready()
    async with playing(stage) as player:
        await player.go("STANDBY")
        (stage.home(player.workspace_id) / "big").write_bytes(os.urandom(5_000_000))
        # It would have ended before it can be met.
        with stage.s3.trouble(Slow(bytes_per_second=100_000)):
            await player.ask("ARCHIVED")
            async with going_on(stage, "s3-away"):

                async def is_away() -> bool:
                    return isinstance(stage.s3.mode, Away)

                await until(is_away, "S3 is away")
                with pytest.raises(NothingToBreak):
                    await fault(stage, "s3-500").run(chance(2))
                await player.go("RUNNING")
                await player.go("STANDBY")
                assert await is_away()


async def test_a_relay_that_loses_its_session_is_elected_anew(stage: Stage) -> None:
    await stage.wait_ready()

    async def elected() -> int | None:
        async with stage.database.transaction() as session:
            found: int | None = await session.scalar(ELECTED_RELAY)
            return found

    async def is_elected() -> bool:
        return await elected() is not None

    await until(is_elected, "a relay is elected")
    before = await elected()
    await fault(stage, "relay").run(chance(1))

    async def another() -> bool:
        return await elected() not in {None, before}

    await until(another, "another session is elected")


async def test_a_killed_ide_is_started_again(stage: Stage) -> None:
    await stage.wait_ready()
    async with playing(stage) as player:
        await player.go("RUNNING")
        before = await stage.instances(player.workspace_id)
        said = await fault(stage, "kill-ide").run(chance(1))
        assert player.workspace_id in said
        await player.go("RUNNING")

        async def another() -> bool:
            now = await stage.instances(player.workspace_id)
            return len(now) == 1 and now != before

        await until(another, "another IDE runs")


async def test_a_killed_storage_job_is_done_again_and_nothing_is_lost(stage: Stage) -> None:
    await stage.wait_ready()
    async with playing(stage) as player:
        await player.go("STANDBY")
        content = os.urandom(5_000_000)
        (stage.home(player.workspace_id) / "big").write_bytes(content)
        # It would have ended before it can be met.
        with stage.s3.trouble(Slow(bytes_per_second=100_000)):
            await player.ask("ARCHIVED")
            said = await fault(stage, "kill-job").run(chance(1))
        assert said.startswith("kill -9 of the storage job")
        await player.go("ARCHIVED")
        await player.go("STANDBY")
        assert (stage.home(player.workspace_id) / "big").read_bytes() == content


async def test_a_storage_job_whose_helper_was_killed_says_so_and_nothing_is_lost(stage: Stage) -> None:
    await stage.wait_ready()
    async with playing(stage) as player:
        await player.go("STANDBY")
        content = os.urandom(100_000_000)
        (stage.home(player.workspace_id) / "big").write_bytes(content)
        # More than pipe, compressor and parts hold, so that tar waits.
        with stage.s3.trouble(Slow(bytes_per_second=100_000)):
            await player.ask("ARCHIVED")
            said = await fault(stage, "kill-helper").run(chance(1))
        assert said.startswith("kill -9 of the tar ")

        async def has_failed() -> bool:
            return (await player.read())["error"] is not None

        await until(has_failed, "the job has noticed")
        await player.go("ARCHIVED")
        await player.go("STANDBY")
        assert (stage.home(player.workspace_id) / "big").read_bytes() == content


async def test_there_is_nothing_to_break_where_no_ide_and_no_job_runs(stage: Stage) -> None:
    async def nothing_runs() -> bool:
        return not await stage.all_instances() and not await stage.jobs()

    await until(nothing_runs, "what other tests left has ended")
    for kind in ("kill-ide", "kill-job", "kill-helper"):
        with pytest.raises(NothingToBreak):
            await fault(stage, kind).run(chance(1))


async def break_until(stage: Stage, count: int, seed: str) -> list[FaultRecord]:
    records: list[FaultRecord] = []
    enough = asyncio.Event()

    def note(record: FaultRecord) -> None:
        records.append(record)
        if len(records) >= count:
            enough.set()

    await break_things(stage, chance(seed), enough, note, per_second=20)
    return sorted(records, key=lambda record: record.at)


async def test_the_seed_decides_what_is_broken_and_nothing_stays_broken(stage: Stage) -> None:
    runs = []
    for _ in range(2):
        await stage.wait_ready()
        records = await break_until(stage, 8, "7:faults")
        assert any(record.happened for record in records)
        runs.append([record.kind for record in records])
        assert stage.s3.mode == PASSING
        assert stage.disk is None or not stage.disk.is_full()
        await stage.wait_ready()
    shorter = min(map(len, runs))
    assert runs[0][:shorter] == runs[1][:shorter]


@pytest.mark.parametrize("waits", [True, False])
async def test_a_fault_counts_if_it_broke_something(waits: bool, stage: Stage) -> None:
    async def break_it(_: Random) -> str:
        return "broken"

    async def find_nothing(_: Random) -> str:
        raise NothingToBreak("there is none")

    records: list[FaultRecord] = []
    for run in (break_it, find_nothing):
        await run_fault(stage, Fault("test", run, waits=waits), chance(1), records.append)
    assert [(each.what, each.happened) for each in records] == [("broken", True), ("there is none", False)]


async def test_the_docker_engine_is_spared_where_workspaces_are_processes(stage: Stage) -> None:
    assert "dockerd" not in {each.kind for _, each in faults_of(stage, dockerd=True)}


async def test_no_fault_begins_in_a_calm(stage: Stage) -> None:
    await stage.wait_ready()
    records: list[FaultRecord] = []
    stop = asyncio.Event()
    with stage.calm.kept():
        breaking = asyncio.create_task(break_things(stage, chance(1), stop, records.append, per_second=1000))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(breaking), 0.5)
        assert records == []
    await until(partial(_has_some, records), "a fault comes after the calm")
    stop.set()
    await breaking
    await stage.wait_ready()


async def _has_some(records: list[FaultRecord]) -> bool:
    return bool(records)
