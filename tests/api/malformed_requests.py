"""The target of malformed requests, and what their responses must look like."""

import json
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from api.schemas.errors import ErrorBody
from api.security.access import API
from api.validation_errors import DEFAULT
from tests.api.harness import ApiHarness, Person

__all__ = ["harness"]

WORKSPACES = f"{API}/workspaces"


MAX_RESPONSE_BYTES = 20_000


@dataclass(frozen=True)
class MalformedHarness:
    """An administrator with a token and a workspace."""

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


def assert_refused(response: httpx.Response, *statuses: int) -> None:
    """Check that it is a 4xx in our format, with a sentence for a person and no echo of the request."""
    assert response.status_code in (statuses or range(400, 500)), response.text[:1_000]
    problem = ErrorBody.model_validate(response.json()).error
    assert problem.request_id == response.headers["x-request-id"]
    assert problem.message[0].isupper()
    assert len(problem.message.split()) > 3
    assert f"{DEFAULT}." not in problem.message, "a kind of error without a sentence of its own"
    assert len(response.content) < MAX_RESPONSE_BYTES, "the response echoes the request"


def new_workspace(**fields: Any) -> bytes:  # noqa: ANN401
    return json.dumps({"name": "home", "desired_state": "STANDBY", **fields}).encode()
