"""Concurrent requests: limits always hold, and no request ends in a server error."""

import asyncio
import random
from collections import Counter

import httpx
import pytest
from sqlalchemy import func, select, text

from codehub.bootstrap import open_database
from codehub.db.models import Workspace
from codehub.db.predicates import COUNTS_AS_RUNNING
from codehub.db.session import Database
from tests.api.harness import ApiHarness, Person, open_harness

USERS = 20
REQUESTS_EACH = 15
PER_USER, TOTAL = 2, 25
ALLOWED = {200, 201, 409, 429}


@pytest.mark.parametrize("seed", range(2))
async def test_limits_always_hold_under_concurrent_requests(
    api_environment: dict[str, str], seed: int
) -> None:
    limits = {
        "CODEHUB_LIMITS_MAX_RUNNING_PER_USER": str(PER_USER),
        "CODEHUB_LIMITS_MAX_RUNNING_GLOBAL": str(TOTAL),
    }
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    async with (
        open_harness({**api_environment, **limits}) as opened,
        # With its own connections: the requests compete for those of the API.
        open_database(opened.settings) as observed,
    ):
        harness = opened.with_cheap_passwords()
        people = [await harness.person() for _ in range(USERS)]
        parked = {person.user_id: [(await person.create())["id"] for _ in range(3)] for person in people}
        requests = [
            rush(person, number, chance.choice(parked[person.user_id]))
            for person in people
            for number in range(REQUESTS_EACH)
        ]
        chance.shuffle(requests)
        over = asyncio.Event()
        sampling = asyncio.create_task(sample(observed, over))
        try:
            responses = await asyncio.gather(*requests)
        finally:
            over.set()
        assert len(responses) == USERS * REQUESTS_EACH == 300
        codes = Counter(response.status_code for response in responses)
        assert set(codes) <= ALLOWED, codes
        assert codes[429] > 0
        most, samples = await sampling
        assert samples > 1
        assert most <= TOTAL
        # There were more requests than slots.
        assert await count_running(observed) == TOTAL


def rush(person: Person, number: int, parked: str) -> asyncio.Task[httpx.Response]:
    if number % 2:
        return asyncio.create_task(person.client.post(person.workspaces, json={"name": f"number {number}"}))
    path = f"{person.workspaces}/{parked}"
    return asyncio.create_task(person.client.patch(path, json={"desired_state": "RUNNING"}))


async def sample(database: Database, over: asyncio.Event) -> tuple[int, int]:
    """Sample how many run, and return the highest count and the number of samples."""
    most, samples = 0, 0
    while True:
        last = over.is_set()
        by_owner = (
            select(func.count().label("running"))
            .select_from(Workspace)
            .where(text(COUNTS_AS_RUNNING))
            .group_by(Workspace.owner_user_id)
            .subquery()
        )
        async with database.transaction() as session:
            counts = (
                await session.execute(select(func.sum(by_owner.c.running), func.max(by_owner.c.running)))
            ).one()
        assert (counts[1] or 0) <= PER_USER
        most, samples = max(most, int(counts[0] or 0)), samples + 1
        if last:
            return most, samples


async def count_running(database: Database) -> int:
    async with database.transaction() as session:
        statement = select(func.count()).select_from(Workspace).where(text(COUNTS_AS_RUNNING))
        return (await session.scalars(statement)).one()


async def test_of_concurrent_changes_to_the_same_version_one_wins(harness: ApiHarness) -> None:
    ada = await harness.with_cheap_passwords().person()
    created = await ada.create()
    path, headers = f"{ada.workspaces}/{created['id']}", {"If-Match": f'"{created["version"]}"'}
    responses = await asyncio.gather(
        *(ada.client.patch(path, json={"name": f"number {number}"}, headers=headers) for number in range(20))
    )
    codes = Counter(response.status_code for response in responses)
    assert codes == {200: 1, 412: 19}
    (winner,) = (response.json() for response in responses if response.status_code == 200)
    assert (await ada.client.get(path)).json() == winner


async def test_concurrent_starts_and_deletions_of_one_workspace_end_consistently(harness: ApiHarness) -> None:
    ada = await harness.with_cheap_passwords().person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    responses = await asyncio.gather(
        *(
            ada.client.patch(path, json={"desired_state": ("RUNNING", "STANDBY", "ARCHIVED")[number % 3]})
            for number in range(30)
        ),
        *(ada.client.delete(path) for _ in range(3)),
    )
    codes = Counter(response.status_code for response in responses)
    assert set(codes) <= {200, 202, 404, 409}, codes
    # Deleting again changes nothing, and a deleted workspace cannot be started.
    assert codes[202] == 3
    assert (await ada.client.get(path)).json()["desired_state"] == "DELETED"
