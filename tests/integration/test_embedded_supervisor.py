"""A managed process keeps its child running through crashes, failed starts and slow stops."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from codehub.embedded import supervisor as supervisor_module
from codehub.embedded.child_process import CannotPrepare, Child, ChildState, ChildStatus, StartFailed
from codehub.embedded.supervisor import ManagedProcess
from testkit.processes import process_tree, wait_until_ended
from testkit.waiting import until

SHELL = "/bin/sh"
# Has a child of its own before it reports that it is ready, then waits for signals.
SERVE = "sleep 60 & touch ready; while :; do wait; sleep 60 & done"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The delays have tests of their own."""
    monkeypatch.setattr(supervisor_module, "restart_delay", lambda _crashes: 0.01)


class History:
    """All statuses of a child."""

    def __init__(self) -> None:
        self.statuses: list[ChildStatus] = []

    def __call__(self, status: ChildStatus) -> None:
        self.statuses.append(status)

    @property
    def states(self) -> list[ChildState]:
        return [status.state for status in self.statuses]


def child(directory: Path, script: str) -> Child:
    async def is_ready() -> bool:
        return (directory / "ready").exists()

    return Child(
        name="child",
        title="Child",
        command=(SHELL, "-c", script),
        directory=directory,
        address="",
        is_ready=is_ready,
        environment={"PATH": "/usr/bin:/bin"},
        remove_leftovers=lambda: (directory / "ready").unlink(missing_ok=True),
        stop_seconds=5,
    )


@asynccontextmanager
async def managed(described: Child, observer: Callable[[ChildStatus], None]) -> AsyncIterator[ManagedProcess]:
    process = ManagedProcess(described, described.directory / "child.log", observer)
    try:
        yield process
    finally:
        await process.stop()


async def test_a_crashed_child_is_restarted_and_the_crash_is_reported(tmp_path: Path) -> None:
    history = History()
    async with managed(child(tmp_path, SERVE), history) as process:
        await process.start()
        first = process.status.pid
        await process.kill()
        await process.wait_ready()
        assert process.status.state is ChildState.RUNNING
        assert process.status.pid != first
    notes = [status.note for status in history.statuses if status.state is ChildState.RESTARTING]
    assert notes == ["it was ended by SIGKILL; next start in 0.01 s"]
    assert history.states[-2:] == [ChildState.STOPPING, ChildState.STOPPED]


async def test_a_requested_restart_is_not_a_crash(tmp_path: Path) -> None:
    history = History()
    async with managed(child(tmp_path, SERVE), history) as process:
        await process.start()
        first = process.status.pid
        await process.restart()
        assert process.status.pid != first
    assert ChildState.RESTARTING not in history.states


async def test_a_child_that_never_starts_fails_with_its_log(tmp_path: Path) -> None:
    async with managed(child(tmp_path, "echo no luck >&2; exit 7"), History()) as process:
        with pytest.raises(StartFailed, match="Child did not start: it ended with exit code 7") as failed:
            await process.start()
    assert failed.value.log.read_text() == "no luck\n" * 3


async def test_a_child_that_does_not_become_ready_is_ended(tmp_path: Path) -> None:
    described = replace(child(tmp_path, "exec sleep 60"), start_seconds=0.05)
    async with managed(described, History()) as process:
        with pytest.raises(StartFailed, match="not ready within"):
            await process.start()


async def test_a_missing_program_is_named(tmp_path: Path) -> None:
    described = replace(child(tmp_path, ""), command=("no-such-program",))
    async with managed(described, History()) as process:
        with pytest.raises(StartFailed, match="no-such-program"):
            await process.start()


async def test_failed_preparation_is_the_reason(tmp_path: Path) -> None:
    async def prepare() -> None:
        raise CannotPrepare("the disk is full")

    async with managed(replace(child(tmp_path, SERVE), prepare=prepare), History()) as process:
        with pytest.raises(StartFailed, match="the disk is full"):
            await process.start()


async def test_a_child_that_ignores_sigterm_is_killed_with_its_group(tmp_path: Path) -> None:
    script = f"trap '' TERM; {SERVE}"
    async with managed(replace(child(tmp_path, script), stop_seconds=0.1), History()) as process:
        await process.start()
        family = process_tree(process.status.pid or 0)
        await process.stop()
    assert len(family) > 1
    assert wait_until_ended(family) == []


async def test_a_stop_during_the_start_leaves_nothing(tmp_path: Path) -> None:
    spawned: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def observer(status: ChildStatus) -> None:
        if status.pid and not spawned.done():
            spawned.set_result(status.pid)

    async with managed(child(tmp_path, "exec sleep 60"), observer) as process:
        starting = asyncio.create_task(process.start())
        family = process_tree(await spawned)
        await process.stop()
        starting.cancel()
    assert wait_until_ended(family) == []


async def test_a_child_has_a_session_of_its_own(tmp_path: Path) -> None:
    async with managed(child(tmp_path, SERVE), History()) as process:
        await process.start()
        pid = process.status.pid or 0
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        assert fields[2:4] == [str(pid), str(pid)]


async def test_the_stop_signal_is_that_of_the_child(tmp_path: Path) -> None:
    script = f"trap 'echo bye; exit' INT; {SERVE}"
    async with managed(replace(child(tmp_path, script), stop_signal=signal.SIGINT), History()) as process:
        await process.start()
        await process.stop()
        assert process.log.read_text() == "bye\n"


async def test_a_process_in_another_session_keeps_running(tmp_path: Path) -> None:
    # Like the IDEs of workspaces, which the worker starts.
    async with managed(child(tmp_path, f"setsid sleep 60 & {SERVE}"), History()) as process:
        await process.start()

        def leaders() -> list[psutil.Process]:
            _, *members = process_tree(process.status.pid or 0)
            return [member for member in members if os.getsid(member.pid) == member.pid]

        async def has_own_session() -> bool:
            return bool(leaders())

        # It is forked first and leaves the session later.
        await until(has_own_session, "a process in another session")
        (outlasting,) = leaders()
        _, *members = process_tree(process.status.pid or 0)
        await process.stop()
    assert outlasting.is_running()
    outlasting.kill()
    assert wait_until_ended(members) == []


async def test_an_error_in_a_readiness_check_does_not_end_the_supervision(tmp_path: Path) -> None:
    looks = iter([False])

    async def is_ready() -> bool:
        return next(looks, None) is None or 1 // 0 == 1

    async with managed(replace(child(tmp_path, SERVE), is_ready=is_ready), History()) as process:
        await process.start()
        assert process.status.state is ChildState.RUNNING
