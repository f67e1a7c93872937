"""Local instances outlive their worker, are never confused with other processes, and leave none behind."""

import asyncio
import contextlib
import json
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from codehub.adapters.local import processes
from codehub.adapters.local.instance_files import STATE_NAME, InstanceState, read_state
from codehub.adapters.local.instances import Timeouts
from codehub.adapters.local.processes import InstanceProcess
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.ports import InstanceRequest, Upstream
from testkit.fakes import IMAGE, NEVER_READY_IMAGE
from testkit.needs import need_bubblewrap
from testkit.waiting import until
from tests.contracts.instance_harness import LocalHarness, ask

WORKER = """
import asyncio, os, sys
from pathlib import Path
from codehub.adapters.local import launcher, processes
from codehub.ports import InstanceRequest
from tests.contracts.instance_harness import LocalHarness
from testkit.fakes import IMAGE

async def main():
    harness = LocalHarness(Path(sys.argv[1]), sandboxed=sys.argv[3] == "sandboxed")
    spawn = processes.spawn
    def die_before(*arguments, **options):
        os.kill(os.getpid(), 9)
    def die_after(*arguments, **options):
        spawn(*arguments, **options)
        os.kill(os.getpid(), 9)
    processes.spawn = {"before": die_before, "after": die_after, "later": spawn}[sys.argv[4]]
    await harness.instances.start(InstanceRequest(sys.argv[2], IMAGE), lambda _: None)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.fixture(params=["plain", "sandboxed"])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalHarness]:
    if request.param == "sandboxed":
        need_bubblewrap()
    local = LocalHarness(tmp_path, sandboxed=request.param == "sandboxed")
    yield local
    await local.clean_up()


@pytest.fixture
async def workspace_id(harness: LocalHarness) -> WorkspaceId:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    return workspace_id


async def start(harness: LocalHarness, workspace_id: WorkspaceId, image_ref: str = IMAGE) -> None:
    await harness.instances.start(InstanceRequest(workspace_id, image_ref), lambda _: None)


async def run_worker_until_killed(harness: LocalHarness, workspace_id: WorkspaceId, moment: str) -> None:
    mode = "sandboxed" if harness.sandboxed else "plain"
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER, str(harness.root.path), workspace_id, mode, moment),
        cwd=Path(__file__).parents[2],
    )
    assert await worker.wait() == -signal.SIGKILL


async def test_an_instance_outlives_its_worker_and_is_found_again(
    harness: LocalHarness, workspace_id: WorkspaceId
) -> None:
    await run_worker_until_killed(harness, workspace_id, "later")
    assert await harness.instances.list_all() == {workspace_id: ContainerFact.READY}
    assert await ask(await harness.instances.find_upstream(workspace_id), workspace_id, "health") == "ok"
    await harness.instances.stop(workspace_id)
    assert harness.pids(workspace_id) == []


async def test_a_worker_killed_before_it_spawns_leaves_what_the_next_start_replaces(
    harness: LocalHarness, workspace_id: WorkspaceId
) -> None:
    await run_worker_until_killed(harness, workspace_id, "before")
    assert await harness.instances.observe(workspace_id) is ContainerFact.NOT_READY
    await start(harness, workspace_id)
    assert harness.count(workspace_id) == 1


async def test_a_worker_killed_right_after_it_spawned_does_not_cause_a_second_instance(
    harness: LocalHarness, workspace_id: WorkspaceId
) -> None:
    await run_worker_until_killed(harness, workspace_id, "after")
    first = outermost(harness, workspace_id)
    assert len(first) == 1
    await start(harness, workspace_id)
    assert outermost(harness, workspace_id) == first
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY


def outermost(harness: LocalHarness, workspace_id: WorkspaceId) -> set[InstanceProcess]:
    return processes.root_processes(processes.find_processes(harness.root.marker(workspace_id)))


async def test_a_record_without_processes_is_an_exited_instance(
    harness: LocalHarness, workspace_id: WorkspaceId
) -> None:
    """As after a reboot, when other processes can have all recorded process ids."""
    harness.root.instance(workspace_id).mkdir()
    InstanceState(IMAGE, "token").write(harness.root.instance(workspace_id))
    assert await harness.instances.observe(workspace_id) is ContainerFact.NOT_READY
    await harness.instances.stop(workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT


async def test_a_process_that_reuses_a_process_id_is_never_signaled(
    harness: LocalHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    bystander = await asyncio.create_subprocess_exec("/bin/sleep", "1000", start_new_session=True)
    try:
        mistaken = InstanceProcess(bystander.pid, bystander.pid, sandboxed=False)
        processes.send_signal(harness.root.marker(workspace_id), signal.SIGKILL, {mistaken})
        await harness.instances.stop(workspace_id)
        assert psutil.Process(bystander.pid).status() == psutil.STATUS_SLEEPING
    finally:
        bystander.kill()
        await bystander.wait()


async def test_children_that_left_the_group_end_with_their_instance(
    harness: LocalHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    before = set(harness.pids(workspace_id))
    await ask(await harness.instances.find_upstream(workspace_id), workspace_id, "detach")
    (child,) = set(harness.pids(workspace_id)) - before
    await harness.instances.stop(workspace_id)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


async def end_ide(harness: LocalHarness, upstream: Upstream | None, workspace_id: WorkspaceId) -> None:
    """Let the IDE exit, and wait until the provider sees it."""
    with contextlib.suppress(ConnectionError):
        await ask(upstream, workspace_id, "exit")

    async def exited() -> bool:
        return await harness.instances.observe(workspace_id) is ContainerFact.NOT_READY

    await until(exited, "the IDE has exited")


async def test_stop_ends_children_that_outlive_their_ide(
    harness: LocalHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    upstream = await harness.instances.find_upstream(workspace_id)
    await ask(upstream, workspace_id, "detach")
    await end_ide(harness, upstream, workspace_id)
    assert harness.pids(workspace_id)
    await harness.instances.stop(workspace_id)
    assert harness.pids(workspace_id) == []


async def test_an_exited_ide_is_replaced_at_once_though_its_children_outlived_it(
    harness: LocalHarness, workspace_id: WorkspaceId
) -> None:
    await start(harness, workspace_id)
    upstream = await harness.instances.find_upstream(workspace_id)
    await ask(upstream, workspace_id, "detach")
    before = harness.pids(workspace_id)
    await end_ide(harness, upstream, workspace_id)
    await start(harness, workspace_id)
    assert await harness.instances.observe(workspace_id) is ContainerFact.READY
    assert not set(harness.pids(workspace_id)) & set(before)


async def test_an_ide_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    harness = LocalHarness(tmp_path, sandboxed=False, timeouts=Timeouts(stop=0.2))
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    await start(harness, workspace_id, "deaf")
    await harness.instances.stop(workspace_id)
    assert harness.pids(workspace_id) == []


async def test_an_ide_that_never_becomes_ready_is_stopped_and_quoted(tmp_path: Path) -> None:
    harness = LocalHarness(tmp_path, sandboxed=False, timeouts=Timeouts(start=10))
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    with pytest.raises(Transient, match="about to wait forever"):
        await start(harness, workspace_id, NEVER_READY_IMAGE)
    assert harness.pids(workspace_id) == []
    assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT


async def test_nothing_of_the_worker_s_environment_reaches_the_ide(
    harness: LocalHarness, workspace_id: WorkspaceId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEHUB_S3_SECRET_KEY", "very-secret")
    monkeypatch.setenv("CODEHUB_DATABASE_URL", "postgresql://very-secret")
    await start(harness, workspace_id)
    answer = await ask(await harness.instances.find_upstream(workspace_id), workspace_id, "environ")
    system = {"PATH", "HOME", "TMPDIR", "USER", "SHELL", "LANG", "TERM"}
    # The sandbox adds PWD, and Python adds LC_CTYPE.
    assert json.loads(answer).keys() - {"PWD", "LC_CTYPE"} == system | {processes.MARKER_VARIABLE, "TOKEN"}
    assert "very-secret" not in answer


async def test_only_the_owner_can_read_the_token(harness: LocalHarness, workspace_id: WorkspaceId) -> None:
    await start(harness, workspace_id)
    directory = harness.root.instance(workspace_id)
    state = read_state(directory)
    assert state is not None
    assert (directory / STATE_NAME).stat().st_mode & 0o777 == 0o600
    assert state.token not in repr(state)
    commands = [" ".join(psutil.Process(pid).cmdline()) for pid in harness.pids(workspace_id)]
    assert commands
    assert [command for command in commands if state.token in command] == []


async def test_an_ended_instance_leaves_no_zombie(harness: LocalHarness, workspace_id: WorkspaceId) -> None:
    await start(harness, workspace_id)
    harness.kill(workspace_id)
    await harness.instances.list_all()
    assert [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE] == []
