"""How people handle responses, refusals and missing responses."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from codehub.domain.states import DesiredState
from gameday.checks.findings import Findings
from gameday.people.client import NoResponse, UserClient
from gameday.people.files import BIG_NAME, Files
from gameday.people.journal import Journal
from gameday.people.person import make_person
from gameday.people.workspaces import WORKSPACES, Workspaces
from gameday.stage.setup import User
from gameday.stage.tiny_ide import FILES, hash_tree
from testkit.waiting import until
from tests.gameday.front_doors import (
    FrontDoor,
    forward_to,
    lose_response,
    open_front_door,
    respond,
    respond_with_error,
)
from tests.gameday.ides import RunningIde, running_ide

RANDOM = Random(1)  # noqa: S311
HOME, FILE = "0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44", "src/main.py"


@dataclass(frozen=True)
class Harness:
    """A user's files and workspaces behind a fake front door."""

    door: FrontDoor
    ide: RunningIde
    files: Files
    workspaces: Workspaces
    journal: Journal
    findings: Findings
    tally: Counter[str]

    @property
    def words(self) -> list[str]:
        return [each.words for each in self.findings.violations]


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with running_ide(tmp_path / "home") as ide, open_front_door(forward_to(ide.url)) as door:
        journal, findings, tally = Journal(), Findings(lambda: 0.0), Counter[str]()
        async with UserClient(door.url, "token", tally) as client:
            files = Files(client, journal, findings, tally, RANDOM)
            workspaces = Workspaces(client, journal, tally, RANDOM, "ada")
            yield Harness(door, ide, files, workspaces, journal, findings, tally)


async def test_acknowledged_files_are_in_the_home(harness: Harness) -> None:
    for name in (FILE, BIG_NAME, "100%.log"):
        await harness.files.write(HOME, name)
    assert hash_tree(harness.ide.home) == harness.journal.known(HOME)
    assert harness.tally["files: PUT acknowledged"] == 3
    assert harness.tally["files: PUT uncertain"] == 0


async def test_every_request_names_the_content_it_replaces(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    first = harness.journal.known(HOME)[FILE]
    await harness.files.write(HOME, FILE)
    assert [each.headers.get("If-Match") for each in harness.door.requests] == [None, first]
    assert harness.door.requests[0].headers["If-None-Match"] == "*"


async def test_a_lost_response_leaves_the_file_uncertain_until_it_is_read(harness: Harness) -> None:
    forward = harness.door.handler
    await harness.files.write(HOME, FILE)
    before = harness.journal.known(HOME)[FILE]
    harness.door.handler = lose_response(forward)
    await harness.files.write(HOME, FILE)
    assert len(harness.journal.expected(HOME)[FILE]) == 2
    assert harness.tally["files: PUT uncertain"] == 1
    harness.door.handler = forward
    await harness.files.write(HOME, FILE)
    after = harness.journal.known(HOME)[FILE]
    assert after != before
    assert hash_tree(harness.ide.home) == {FILE: after}
    assert harness.words == []


@pytest.mark.parametrize(
    "refusal",
    [
        respond_with_error(503, "WORKSPACE_STOPPED"),
        respond_with_error(503, "WORKSPACE_BUSY"),
        respond_with_error(502, "LIMIT_EXCEEDED"),
        respond_with_error(502, "UPSTREAM_UNAVAILABLE", phase="ARCHIVED"),
    ],
)
async def test_a_refusal_that_never_reached_the_ide_changes_nothing(
    harness: Harness, refusal: object
) -> None:
    assert callable(refusal)
    harness.door.handler = refusal
    await harness.files.write(HOME, FILE)
    assert harness.journal.is_certain(HOME, FILE)
    assert harness.journal.known(HOME) == {}


@pytest.mark.parametrize(
    "failure",
    [
        respond_with_error(502, "UPSTREAM_UNAVAILABLE"),
        respond_with_error(503, "DEPENDENCY_UNAVAILABLE"),
        respond(504, "the upstream did not respond in time"),
        # Without the IDE's signature.
        respond(200, "ok"),
        respond(412, ""),
    ],
)
async def test_any_other_response_without_the_ide_is_uncertain(harness: Harness, failure: object) -> None:
    assert callable(failure)
    harness.door.handler = failure
    await harness.files.write(HOME, FILE)
    assert not harness.journal.is_certain(HOME, FILE)


async def test_nothing_is_uncertain_without_a_connection() -> None:
    tally, journal = Counter[str](), Journal()
    async with open_front_door(respond(200, "")) as door:
        pass
    async with UserClient(door.url, "token", tally) as client:
        await Files(client, journal, Findings(lambda: 0.0), tally, RANDOM).write(HOME, FILE)
        with pytest.raises(NoResponse) as raised:
            await client.send("GET", "/")
    assert not raised.value.sent
    assert journal.is_certain(HOME, FILE)


async def test_a_read_notices_a_lost_file(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    (harness.ide.home / FILES / FILE).unlink()
    await harness.files.read(HOME, FILE)
    assert "is missing" in harness.words[0]


async def test_a_comparison_notices_an_older_home(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    older = (harness.ide.home / FILES / FILE).read_bytes()
    await harness.files.write(HOME, FILE)
    (harness.ide.home / FILES / FILE).write_bytes(older)
    await harness.files.compare_all(HOME)
    assert "an older content" in harness.words[0]


async def test_a_write_notices_other_content(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    (harness.ide.home / FILES / FILE).write_bytes(b"foreign")
    await harness.files.write(HOME, FILE)
    assert "the IDE found other content" in harness.words[0]
    assert harness.tally["files: PUT found other content"] == 1


@pytest.mark.parametrize("method", ["DELETE", "PUT"])
async def test_no_request_is_silently_sent_twice(harness: Harness, method: str) -> None:
    """Found by a game: the second DELETE could not connect, so the first seemed never sent."""
    await harness.files.write(HOME, FILE)
    harness.door.handler = lose_response(harness.door.handler)
    sent = len(harness.door.requests)
    change = harness.files.delete if method == "DELETE" else harness.files.write
    await change(HOME, FILE)
    assert [each.method for each in harness.door.requests[sent:]] == [method]
    assert not harness.journal.is_certain(HOME, FILE)


async def test_a_deleted_file_is_expected_to_be_gone(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    await harness.files.delete(HOME, FILE)
    assert harness.journal.expected(HOME) == {FILE: frozenset({None})}
    assert hash_tree(harness.ide.home) == {}


async def test_a_creation_is_repeated_with_the_same_key_until_it_gets_a_response(harness: Harness) -> None:
    created = respond(201, {"id": HOME})
    for harness.door.handler in (
        lose_response(created),
        respond_with_error(503, "DEPENDENCY_UNAVAILABLE"),
        created,
        created,
    ):
        await harness.workspaces.create()
    keys = [each.headers["Idempotency-Key"] for each in harness.door.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    bodies = [await each.text() for each in harness.door.requests]
    assert bodies[0] == bodies[1] == bodies[2] != bodies[3]
    assert harness.tally["workspaces: created"] == 2


async def test_a_deletion_without_a_response_leaves_the_existence_open(harness: Harness) -> None:
    harness.door.handler = lose_response(respond(202, {}))
    await harness.workspaces.delete(HOME, purge=False)
    existence = harness.journal.existence(HOME)
    assert not existence.must_exist
    assert not existence.must_be_gone


async def test_after_a_refused_deletion_the_workspace_must_exist(harness: Harness) -> None:
    harness.door.handler = respond_with_error(409, "OPERATION_IN_PROGRESS")
    await harness.workspaces.delete(HOME, purge=True)
    assert harness.journal.existence(HOME).must_exist


async def test_a_deletion_that_became_a_purge_is_recorded_as_one(harness: Harness) -> None:
    harness.door.handler = respond(202, {"purge": True})
    await harness.workspaces.delete(HOME, purge=False)
    assert harness.journal.existence(HOME).purged


async def test_a_deletion_is_undone(harness: Harness) -> None:
    harness.door.handler = respond(202, {"purge": False})
    await harness.workspaces.delete(HOME, purge=False)
    assert harness.journal.existence(HOME).must_be_gone
    await harness.workspaces.undelete(HOME)
    assert harness.journal.existence(HOME).must_exist


async def test_an_outage_does_not_look_like_an_empty_list(harness: Harness) -> None:
    harness.door.handler = respond_with_error(503, "DEPENDENCY_UNAVAILABLE")
    assert await harness.workspaces.list() is None
    await harness.workspaces.set_desired_state(HOME, DesiredState.RUNNING)
    await harness.workspaces.recover(HOME)
    assert {key for key in harness.tally if key.startswith("workspaces")} == set()


@asynccontextmanager
async def person_at(harness: Harness) -> AsyncIterator[Counter[str]]:
    """Run one simulated person during the block; yield their tally."""
    user = User("1", "ada", "token", "password")
    tally, stop = Counter[str](), asyncio.Event()
    person = make_person(
        harness.door.url, user, "7", journal=harness.journal, findings=harness.findings, tally=tally
    )
    running = asyncio.create_task(person.run(stop))
    yield tally
    stop.set()
    await running


async def test_a_person_continues_through_outages_and_stops_at_the_end(harness: Harness) -> None:
    harness.door.handler = lose_response(respond(200, {}))
    async with person_at(harness) as tally:

        async def tried_again() -> bool:
            return tally["requests: no response"] > 2

        await until(tried_again, "the person tried again")


async def test_people_retry_undo_and_purge_failed_deletions(harness: Harness) -> None:
    """Otherwise failed deletions take all running slots of their owner, and the game stalls."""
    failed = {"id": HOME, "phase": "DELETING", "operation": "NONE", "needs_person": True}
    harness.door.handler = respond(200, {"items": [failed], "purge": True})
    wanted = {f"POST /{HOME}/recover", f"POST /{HOME}/undelete", f"DELETE /{HOME}?purge=true"}
    async with person_at(harness):

        async def did_all() -> bool:
            sent = {
                f"{each.method} {each.path_qs.removeprefix(WORKSPACES)}" for each in harness.door.requests
            }
            return wanted <= sent

        await until(did_all, "the person did all three")


async def test_people_leave_a_running_deletion_alone(harness: Harness) -> None:
    deleting = {"id": HOME, "phase": "DELETING", "operation": "NONE", "needs_person": False}
    harness.door.handler = respond(200, {"items": [deleting]})
    async with person_at(harness):

        async def listed_often() -> bool:
            return sum(each.path_qs.endswith("deleted=false") for each in harness.door.requests) > 10

        await until(listed_often, "the person listed the workspaces")
    touched = [each for each in harness.door.requests if HOME in each.path]
    assert all(each.path.endswith("/undelete") for each in touched)
