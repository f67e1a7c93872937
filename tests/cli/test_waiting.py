"""Waiting for a workspace: progress, results, interruptions and lost connections."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.errors import ExitCode
from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.progress_board import RedisProgressBoard
from codehub.bootstrap import redis_url_of
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Progress
from testkit.network_faults import FaultRelay
from testkit.waiting import until
from tests.api.workspace_rows import set_columns
from tests.cli.harness import CliUser

SNAPSHOT = b"event: snapshot"


@asynccontextmanager
async def held(user: CliUser, call: str) -> AsyncIterator[None]:
    """Block the worker at this call during the block."""
    gates = user.harness.world.gates
    gates[call] = asyncio.Event()
    try:
        yield
    finally:
        gates.pop(call).set()


async def until_started(user: CliUser, workspace_id: str, operation: str) -> None:
    async def started() -> bool:
        return bool((await user.read(workspace_id))["operation"] == operation)

    await until(started, f"{operation} of {workspace_id}")


async def create_stopped(user: CliUser, name: str = "notes") -> str:
    """Create a stopped workspace with a real volume."""
    result = await user.run("ws", "create", name, "--no-start", "--wait", "--json")
    assert result.exit_code == 0, result.output
    return str(json.loads(result.stdout)["id"])


async def test_a_workspace_goes_through_its_whole_lifecycle(ann: CliUser) -> None:
    created = await ann.run("ws", "create", "notes", "--wait")
    assert created.stdout.startswith("notes is running: http")
    # A step may be over before the command looks.
    assert "Preparing ...\nStarting ...\n".endswith(created.stderr)
    for verb, state in {"stop": "stopped", "archive": "archived", "restore": "stopped"}.items():
        result = await ann.run("ws", verb, "notes", "--wait")
        assert (result.exit_code, result.stdout) == (0, f"notes is {state}\n"), result.output
    removed = await ann.run("ws", "rm", "notes", "--yes", "--wait")
    assert removed.stdout == "notes is deleted. Bring it back with: codehub ws undelete notes\n"
    back = await ann.run("ws", "undelete", "notes", "--wait")
    assert (back.exit_code, back.stdout) == (0, "notes is archived\n"), back.output
    purged = await ann.run("ws", "rm", "notes", "--purge", "--yes", "--wait")
    assert (purged.exit_code, purged.stdout) == (0, "notes is deleted\n"), purged.output


async def test_a_script_does_not_wait_by_default(ann: CliUser) -> None:
    await create_stopped(ann)
    async with held(ann, "jobs.archive"):
        result = await ann.run("ws", "archive", "notes")
        assert result.stdout == "notes will be archived soon. Check with: codehub ws show notes\n"


async def test_on_a_terminal_it_waits_and_shows_bytes_and_rate(ann: CliUser) -> None:
    workspace_id = await create_stopped(ann)
    url = redis_url_of(ann.harness.harness.settings)
    async with held(ann, "jobs.archive"), create_client(url) as redis:
        board = RedisProgressBoard(redis)
        with ann.terminal("ws", "archive", "notes") as terminal:
            await terminal.shows("Archiving")
            done = 0

            async def rate_is_shown() -> bool:
                nonlocal done
                done += 1_000_000
                progress = Progress("upload", done, 900_000_000)
                await board.post(WorkspaceId(workspace_id), progress)
                return "MB of 900 MB," in terminal.text and "/s" in terminal.text

            await until(rate_is_shown, "bytes and rate are shown")
            await board.clear(WorkspaceId(workspace_id))
            ann.harness.world.gates["jobs.archive"].set()
            assert await terminal.wait() == 0
    assert terminal.text.splitlines()[-1].endswith("notes is archived")


async def test_an_interruption_does_not_stop_the_operation(ann: CliUser) -> None:
    workspace_id = await create_stopped(ann)
    async with held(ann, "jobs.archive"):
        with ann.terminal("ws", "archive", "notes") as terminal:
            await terminal.shows("Archiving")
            terminal.interrupt()
            assert await terminal.wait() == ExitCode.INTERRUPTED
        assert "You stopped waiting for notes. The operation continues." in terminal.text
        assert "codehub ws show notes" in terminal.text
        assert "Traceback" not in terminal.text

    async def archived() -> bool:
        return bool((await ann.read(workspace_id))["phase"] == "ARCHIVED")

    await until(archived, "the operation continues")


async def test_a_failure_is_explained_with_the_next_step(ann: CliUser) -> None:
    result = await ann.run("ws", "create", "notes", "--image", "nowhere", "--wait")
    assert (result.exit_code, result.stdout) == (ExitCode.FAILED, "")
    assert "notes: It cannot start." in result.stderr
    assert result.stderr.splitlines()[-1] == "See your options with: codehub ws show notes"
    ann.harness.world.images.add("nowhere")
    recovered = await ann.run("ws", "recover", "notes", "--wait")
    assert recovered.stdout.startswith("notes is running: "), recovered.output


async def test_a_failure_is_also_printed_as_json(ann: CliUser) -> None:
    result = await ann.run("ws", "create", "notes", "--image", "not-there", "--wait", "--json")
    assert result.exit_code == ExitCode.FAILED
    assert json.loads(result.stdout)["error"]["reason"] == "ImagePullFailed"


async def test_waiting_continues_after_a_lost_connection(ann: CliUser) -> None:
    await create_stopped(ann)
    async with held(ann, "jobs.archive"), FaultRelay.to(f"127.0.0.1:{ann.harness.api.port}") as relay:
        waiting = asyncio.create_task(
            ann.run("ws", "archive", "notes", "--wait", CODEHUB_URL=f"http://{relay.address}")
        )
        await relay.wait_until_received(SNAPSHOT, times=1)
        relay.cut()
        await relay.wait_until_received(SNAPSHOT, times=2)
        ann.harness.world.gates["jobs.archive"].set()
        result = await waiting
    assert (result.exit_code, result.stdout) == (0, "notes is archived\n"), result.output


async def test_an_administrator_can_wait_for_the_workspace_of_another_user(
    ann: CliUser, admin: CliUser
) -> None:
    workspace_id = await create_stopped(ann)
    result = await admin.run("ws", "archive", workspace_id, "--wait")
    assert (result.exit_code, result.stdout) == (0, "notes is archived\n"), result.output


async def test_a_conflicting_request_in_the_meantime_is_reported(ann: CliUser) -> None:
    workspace_id = await create_stopped(ann)
    async with held(ann, "jobs.archive"):
        waiting = asyncio.create_task(ann.run("ws", "archive", "notes", "--wait"))
        await until_started(ann, workspace_id, "ARCHIVING")
        await set_columns(ann.harness.database, workspace_id, desired_state="STANDBY")
    result = await waiting
    assert result.exit_code == ExitCode.REFUSED
    assert "Someone asked to stop it in the meantime." in result.stderr


async def test_a_restart_replaces_the_instance(ann: CliUser) -> None:
    created = await ann.run("ws", "create", "notes", "--wait", "--json")
    workspace_id = json.loads(created.stdout)["id"]
    before = ann.harness.world.instances[workspace_id]
    result = await ann.run("ws", "restart", "notes", "--wait")
    assert result.stdout.startswith("notes is running: "), result.output
    assert ann.harness.world.instances[workspace_id] is not before


async def test_a_restart_of_a_stopped_workspace_starts_it(ann: CliUser) -> None:
    await create_stopped(ann)
    result = await ann.run("ws", "restart", "notes", "--wait")
    assert result.stdout.startswith("notes is running: "), result.output
