"""Short ways to ask for things of workspaces, and what the tests of that share."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import Client

from testkit.fake_world import FakeWorld
from testkit.waiting import until
from tests.api.harness import ApiHarness, Person, running_worker


@pytest.fixture
def harness(harness: ApiHarness) -> ApiHarness:
    return harness.with_cheap_passwords()


async def patch(person: Person, workspace_id: str, form: dict[str, Any], **headers: str) -> Any:  # noqa: ANN401
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return await person.client.patch(f"{person.workspaces}/{workspace_id}", json=form, headers=names)


async def changed(person: Person, workspace_id: str, **form: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await patch(person, workspace_id, form)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def error_of(answer: Any, status: int, code: str) -> dict[str, Any]:  # noqa: ANN401
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    problem: dict[str, Any] = answer.json()["error"]
    assert problem["request_id"] == answer.headers["x-request-id"]
    return problem


async def listed(person: Person, **query: Any) -> list[str]:  # noqa: ANN401
    """The ids of all pages, in order."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await person.client.get(person.workspaces, params={**query, **cursor})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += [each["id"] for each in page["items"]]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


@pytest.fixture
async def world(harness: ApiHarness, temporal_client: Client) -> AsyncIterator[FakeWorld]:
    """Whatever the API wakes is carried out here."""
    async with running_worker(harness) as acted_on:
        yield acted_on


async def settled(harness: ApiHarness, person: Person, workspace_id: str) -> dict[str, Any]:
    """The workspace once it is where it should be."""
    read: dict[str, Any] = {}

    async def arrived() -> bool:
        read.update((await person.client.get(f"{person.workspaces}/{workspace_id}")).json())
        return bool(read["phase"] == read["desired_state"] and read["operation"] == "NONE")

    await until(arrived, f"{workspace_id} is where it should be")
    return read
