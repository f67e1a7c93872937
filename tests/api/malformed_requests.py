"""Where malformed requests are handed in, and what must come of each."""

import json
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from api.schemas.errors import ErrorBody
from api.security.access import API
from api.validation_errors import DEFAULT
from tests.api.harness import ApiHarness, Person
from tests.api.module_fixtures import served, shared_environment, shared_harness

__all__ = ["harness", "served", "shared_environment", "shared_harness"]

WORKSPACES = f"{API}/workspaces"


LARGEST_ANSWER = 20_000


@dataclass(frozen=True)
class MalformedHarness:
    """An administrator with a token, and a workspace of theirs."""

    person: Person
    client: httpx.AsyncClient
    token: str
    workspace_id: str

    @property
    def workspace(self) -> str:
        return f"{WORKSPACES}/{self.workspace_id}"


@pytest.fixture(scope="module")
async def harness(shared_harness: ApiHarness) -> MalformedHarness:
    person = await shared_harness.person(admin=True)
    client, _ = await shared_harness.token_client(person)
    token = client.headers["authorization"].removeprefix("Bearer ")
    created = await person.create()
    return MalformedHarness(person, client, token, created["id"])


def assert_refused(answer: httpx.Response, *statuses: int) -> None:
    """A 4xx of ours that a person can read and that does not send everything back."""
    assert answer.status_code in (statuses or range(400, 500)), answer.text[:1_000]
    problem = ErrorBody.model_validate(answer.json()).error
    assert problem.request_id == answer.headers["x-request-id"]
    assert problem.message[0].isupper()
    assert len(problem.message.split()) > 3
    assert f"{DEFAULT}." not in problem.message, "a kind of error without a sentence of its own"
    assert len(answer.content) < LARGEST_ANSWER, "it echoes what it was sent"


def new_workspace(**fields: Any) -> bytes:  # noqa: ANN401
    return json.dumps({"name": "home", "desired_state": "STANDBY", **fields}).encode()
