"""What people make of answers, of refusals, and of no answer at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from codehub.domain.states import DesiredState
from gameday.checks.findings import Findings
from gameday.people.files import BIG_NAME, Files
from gameday.people.journal import Journal
from gameday.people.person import make_person
from gameday.people.requests import NoAnswer, Requests
from gameday.people.tally import Tally
from gameday.people.workspaces import WORKSPACES, Workspaces
from gameday.stage.setup import User
from gameday.stage.tiny_ide import FILES, tree_of
from testkit.waiting import until
from tests.gameday.front_doors import (
    FrontDoor,
    losing,
    open_front_door,
    passing_to,
    refusing,
    saying,
)
from tests.gameday.ides import RunningIde, running_ide

CHANCE = Random(1)  # noqa: S311
HOME, FILE = "0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44", "src/main.py"


@dataclass(frozen=True)
class Harness:
    """Somebody's files and workspaces, and the door to them."""

    door: FrontDoor
    ide: RunningIde
    files: Files
    workspaces: Workspaces
    journal: Journal
    findings: Findings
    tally: Tally

    @property
    def words(self) -> list[str]:
        return [each.words for each in self.findings.violations]


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with running_ide(tmp_path / "home") as ide, open_front_door(passing_to(ide.url)) as door:
        journal, findings, tally = Journal(), Findings(lambda: 0.0), Tally()
        async with Requests(door.url, "token", tally) as requests:
            files = Files(requests, journal, findings, tally, CHANCE)
            workspaces = Workspaces(requests, journal, tally, CHANCE, "ada")
            yield Harness(door, ide, files, workspaces, journal, findings, tally)


async def test_what_is_acknowledged_is_in_the_home(harness: Harness) -> None:
    for name in (FILE, BIG_NAME, "100%.log"):
        await harness.files.write(HOME, name)
    assert tree_of(harness.ide.home) == harness.journal.known(HOME)
    assert harness.tally["files: PUT acknowledged"] == 3
    assert harness.tally["files: PUT uncertain"] == 0


async def test_every_request_names_what_it_replaces(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    first = harness.journal.known(HOME)[FILE]
    await harness.files.write(HOME, FILE)
    assert [each.headers.get("If-Match") for each in harness.door.requests] == [None, first]
    assert harness.door.requests[0].headers["If-None-Match"] == "*"


async def test_a_lost_answer_leaves_the_file_uncertain_until_it_is_read(harness: Harness) -> None:
    passing = harness.door.answer
    await harness.files.write(HOME, FILE)
    before = harness.journal.known(HOME)[FILE]
    harness.door.answer = losing(passing)
    await harness.files.write(HOME, FILE)
    assert len(harness.journal.expected(HOME)[FILE]) == 2
    assert harness.tally["files: PUT uncertain"] == 1
    harness.door.answer = passing
    await harness.files.write(HOME, FILE)
    after = harness.journal.known(HOME)[FILE]
    assert after != before
    assert tree_of(harness.ide.home) == {FILE: after}
    assert harness.words == []


@pytest.mark.parametrize(
    "refusal",
    [
        refusing(503, "WORKSPACE_STOPPED"),
        refusing(503, "WORKSPACE_BUSY"),
        refusing(502, "LIMIT_EXCEEDED"),
        refusing(502, "UPSTREAM_UNAVAILABLE", phase="ARCHIVED"),
    ],
)
async def test_a_refusal_before_the_ide_changes_nothing(harness: Harness, refusal: object) -> None:
    assert callable(refusal)
    harness.door.answer = refusal
    await harness.files.write(HOME, FILE)
    assert harness.journal.is_sure(HOME, FILE)
    assert harness.journal.known(HOME) == {}


@pytest.mark.parametrize(
    "failure",
    [
        refusing(502, "UPSTREAM_UNAVAILABLE"),
        refusing(503, "DEPENDENCY_UNAVAILABLE"),
        saying(504, "the upstream did not answer in time"),
        # Somebody else's words, not the IDE's.
        saying(200, "ok"),
        saying(412, ""),
    ],
)
async def test_any_other_answer_that_is_not_of_the_ide_is_uncertain(
    harness: Harness, failure: object
) -> None:
    assert callable(failure)
    harness.door.answer = failure
    await harness.files.write(HOME, FILE)
    assert not harness.journal.is_sure(HOME, FILE)


async def test_nothing_is_uncertain_if_there_is_nobody_to_connect_to() -> None:
    tally, journal = Tally(), Journal()
    async with open_front_door(saying(200, "")) as door:
        pass
    async with Requests(door.url, "token", tally) as requests:
        await Files(requests, journal, Findings(lambda: 0.0), tally, CHANCE).write(HOME, FILE)
        with pytest.raises(NoAnswer) as raised:
            await requests.ask("GET", "/")
    assert not raised.value.sent
    assert journal.is_sure(HOME, FILE)


async def test_a_lost_file_is_noticed_by_a_read(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    (harness.ide.home / FILES / FILE).unlink()
    await harness.files.read(HOME, FILE)
    assert "is missing" in harness.words[0]


async def test_an_older_home_is_noticed_by_a_look(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    older = (harness.ide.home / FILES / FILE).read_bytes()
    await harness.files.write(HOME, FILE)
    (harness.ide.home / FILES / FILE).write_bytes(older)
    await harness.files.look(HOME)
    assert "an older content" in harness.words[0]


async def test_another_content_is_noticed_by_a_write(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    (harness.ide.home / FILES / FILE).write_bytes(b"foreign")
    await harness.files.write(HOME, FILE)
    assert "said to be other than" in harness.words[0]
    assert harness.tally["files: PUT found another content"] == 1


@pytest.mark.parametrize("method", ["DELETE", "PUT"])
async def test_nothing_is_sent_twice_unseen(harness: Harness, method: str) -> None:
    """Found by a game: the second DELETE met nobody, so the first was taken for one that was never sent."""
    await harness.files.write(HOME, FILE)
    harness.door.answer = losing(harness.door.answer)
    sent = len(harness.door.requests)
    change = harness.files.delete if method == "DELETE" else harness.files.write
    await change(HOME, FILE)
    assert [each.method for each in harness.door.requests[sent:]] == [method]
    assert not harness.journal.is_sure(HOME, FILE)


async def test_a_deleted_file_is_expected_to_be_gone(harness: Harness) -> None:
    await harness.files.write(HOME, FILE)
    await harness.files.delete(HOME, FILE)
    assert harness.journal.expected(HOME) == {FILE: frozenset({None})}
    assert tree_of(harness.ide.home) == {}


async def test_a_creation_is_repeated_with_the_same_key_until_it_is_answered(harness: Harness) -> None:
    created = saying(201, {"id": HOME})
    for harness.door.answer in (losing(created), refusing(503, "DEPENDENCY_UNAVAILABLE"), created, created):
        await harness.workspaces.create()
    keys = [each.headers["Idempotency-Key"] for each in harness.door.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    bodies = [await each.text() for each in harness.door.requests]
    assert bodies[0] == bodies[1] == bodies[2] != bodies[3]
    assert harness.tally["workspaces: created"] == 2


async def test_a_deletion_without_an_answer_leaves_the_fate_open(harness: Harness) -> None:
    harness.door.answer = losing(saying(202, {}))
    await harness.workspaces.delete(HOME, purge=False)
    fate = harness.journal.fate(HOME)
    assert not fate.must_exist
    assert not fate.must_be_gone


async def test_a_refused_deletion_leaves_the_workspace(harness: Harness) -> None:
    harness.door.answer = refusing(409, "OPERATION_IN_PROGRESS")
    await harness.workspaces.delete(HOME, purge=True)
    assert harness.journal.fate(HOME).must_exist


async def test_a_deletion_that_became_a_purge_is_known_as_one(harness: Harness) -> None:
    harness.door.answer = saying(202, {"purge": True})
    await harness.workspaces.delete(HOME, purge=False)
    assert harness.journal.fate(HOME).purged


async def test_a_deletion_is_taken_back(harness: Harness) -> None:
    harness.door.answer = saying(202, {"purge": False})
    await harness.workspaces.delete(HOME, purge=False)
    assert harness.journal.fate(HOME).must_be_gone
    await harness.workspaces.undelete(HOME)
    assert harness.journal.fate(HOME).must_exist


async def test_an_outage_is_no_list_of_workspaces(harness: Harness) -> None:
    harness.door.answer = refusing(503, "DEPENDENCY_UNAVAILABLE")
    assert await harness.workspaces.list() is None
    await harness.workspaces.ask_for(HOME, DesiredState.RUNNING)
    await harness.workspaces.recover(HOME)
    assert {key for key in harness.tally.counts if key.startswith("workspaces")} == set()


@asynccontextmanager
async def somebody_at(harness: Harness) -> AsyncIterator[Tally]:
    """Run one simulated person during the block; yield their tally."""
    user = User("1", "ada", "token", "password")
    tally, stop = Tally(), asyncio.Event()
    person = make_person(
        harness.door.url, user, "7", journal=harness.journal, findings=harness.findings, tally=tally
    )
    living = asyncio.create_task(person.live(stop))
    yield tally
    stop.set()
    await living


async def test_a_person_goes_on_through_outages_and_stops_when_told(harness: Harness) -> None:
    harness.door.answer = losing(saying(200, {}))
    async with somebody_at(harness) as tally:

        async def tried_again() -> bool:
            return tally["requests: no answer"] > 2

        await until(tried_again, "the person asked again")


async def test_a_failed_deletion_is_tried_again_taken_back_and_purged(harness: Harness) -> None:
    """Left alone, failed deletions take all the places of their owner, and the game goes quiet."""
    failed = {"id": HOME, "phase": "DELETING", "operation": "NONE", "needs_person": True}
    harness.door.answer = saying(200, {"items": [failed], "purge": True})
    wanted = {f"POST /{HOME}/recover", f"POST /{HOME}/undelete", f"DELETE /{HOME}?purge=true"}
    async with somebody_at(harness):

        async def did_all() -> bool:
            sent = {
                f"{each.method} {each.path_qs.removeprefix(WORKSPACES)}" for each in harness.door.requests
            }
            return wanted <= sent

        await until(did_all, "the person did all that one can do")


async def test_a_deletion_under_way_is_left_alone(harness: Harness) -> None:
    under_way = {"id": HOME, "phase": "DELETING", "operation": "NONE", "needs_person": False}
    harness.door.answer = saying(200, {"items": [under_way]})
    async with somebody_at(harness):

        async def looked_often() -> bool:
            return sum(each.path_qs.endswith("deleted=false") for each in harness.door.requests) > 10

        await until(looked_often, "the person looked at the list")
    touched = [each for each in harness.door.requests if HOME in each.path]
    assert all(each.path.endswith("/undelete") for each in touched)
