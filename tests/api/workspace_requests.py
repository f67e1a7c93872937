"""Helpers and fixtures for tests of workspace requests."""

from typing import Any

import pytest

from testkit.waiting import until
from tests.api.harness import ApiHarness, Person


@pytest.fixture
def harness(harness: ApiHarness) -> ApiHarness:
    return harness.with_cheap_passwords()


async def patch(person: Person, workspace_id: str, form: dict[str, Any], **headers: str) -> Any:  # noqa: ANN401
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return await person.client.patch(f"{person.workspaces}/{workspace_id}", json=form, headers=names)


async def changed(person: Person, workspace_id: str, **form: Any) -> dict[str, Any]:  # noqa: ANN401
    response = await patch(person, workspace_id, form)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


async def error_of(response: Any, status: int, code: str) -> dict[str, Any]:  # noqa: ANN401
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    problem: dict[str, Any] = response.json()["error"]
    assert problem["request_id"] == response.headers["x-request-id"]
    return problem


async def listed(person: Person, **query: Any) -> list[str]:  # noqa: ANN401
    """Return the ids on all pages, in order."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        response = await person.client.get(person.workspaces, params={**query, **cursor})
        assert response.status_code == 200, response.text
        page = response.json()
        found += [each["id"] for each in page["items"]]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def settled(harness: ApiHarness, person: Person, workspace_id: str) -> dict[str, Any]:
    """Wait until the workspace has reached its desired state, and return it."""
    read: dict[str, Any] = {}

    async def arrived() -> bool:
        read.update((await person.client.get(f"{person.workspaces}/{workspace_id}")).json())
        return bool(read["phase"] == read["desired_state"] and read["operation"] == "NONE")

    await until(arrived, f"{workspace_id} has reached its desired state")
    return read
