"""Requests that Schemathesis generates: a running API behaves as its OpenAPI document says."""

import unittest
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.security.access import ACCESS, API
from api.security.csrf import CSRF_HEADER
from codehub.domain.states import Operation
from tests.api.harness import ApiHarness, Person
from tests.api.module_fixtures import PAGE_ROUTES, server_errors_of
from tests.api.process import ApiProcess
from tests.api.workspace_rows import claim

Route = tuple[str, str]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXCLUDED: dict[Route, str] = {
    ("GET", f"{API}/openapi.json"): "the document does not describe itself",
    ("GET", f"{API}/events"): "the answer never ends; test_events.py and the matrix read it",
    **dict.fromkeys(PAGE_ROUTES, "pages are for people"),
}
ROUTES = sorted(set(ACCESS) - set(EXCLUDED))
# Most requests to these hash a password, which is slow by design.
SLOW = {("POST", f"{API}/login"), ("POST", f"{API}/password"), ("POST", f"{API}/admin/users")}
SLOW_EXAMPLES = 6
EXAMPLES = {
    ("admin", GenerationMode.POSITIVE): 20,
    ("admin", GenerationMode.NEGATIVE): 15,
    ("user", GenerationMode.POSITIVE): 10,
    ("user", GenerationMode.NEGATIVE): 5,
}
TIMEOUT_SECONDS = 30


@dataclass
class Trial:
    """A running API, a harness that creates accounts in its database, and the responses so far."""

    harness: ApiHarness
    schema: BaseSchema
    session: requests.Session
    statuses: Counter[int] = field(default_factory=Counter)

    async def headers(self, person: Person, who: str) -> dict[str, str]:
        """Return headers: an administrator sends a token, a user sends a cookie."""
        if who == "admin":
            client, _ = await self.harness.token_client(person)
            return {"Authorization": client.headers["authorization"]}
        name = self.harness.context.options.cookie_name
        return {
            "Cookie": f"{name}={person.client.cookies[name]}",
            CSRF_HEADER: person.client.headers[CSRF_HEADER],
        }

    async def path_parameters(self, path: str, person: Person) -> dict[str, str]:
        """Create things that exist: generated ids would only get 404."""
        if "{workspace_id}" in path:
            return await self.workspace_parameters(path, person)
        if "{user_id}" in path:
            return {"user_id": str((await self.harness.person()).user_id)}
        if "{token_id}" in path:
            return {"token_id": (await self.harness.token_client(person))[1]}
        if "{session_id}" in path:
            answer = await person.client.get(f"{API}/sessions")
            return {"session_id": answer.json()["items"][0]["id"]}
        return {}

    async def workspace_parameters(self, path: str, person: Person) -> dict[str, str]:
        found = {"workspace_id": (await person.create())["id"]}
        if "{operation_id}" in path:
            database = self.harness.context.database
            found["operation_id"] = str(await claim(database, found["workspace_id"], Operation.STARTING))
        return found


@pytest.fixture(scope="module")
async def trial(shared_harness: ApiHarness, served: ApiProcess) -> AsyncIterator[Trial]:
    schema = schemathesis.openapi.from_url(f"{served.base_url}{API}/openapi.json")
    # Use real credentials: generated ones would only get 401.
    schema.config.generation.update(with_security_parameters=False)
    with requests.Session() as session:
        yield Trial(shared_harness, schema, session)


def _try(
    trial: Trial,
    operation: APIOperation[Any, Any, Any, Any],
    mode: GenerationMode,
    examples: int,
    headers: dict[str, str],
    path_parameters: dict[str, str],
) -> None:
    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode, path_parameters=path_parameters or None))
    def check(case: schemathesis.Case[Any]) -> None:
        if "wait" in case.query and str(case.query["wait"]).isdecimal():
            # There is no worker, so waiting would never end early.
            case.query["wait"] = int(case.query["wait"]) % 2 * 99
        response = case.call(session=trial.session, headers=headers, timeout=TIMEOUT_SECONDS)
        trial.statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    try:
        check()
    except (Unsatisfiable, unittest.SkipTest):
        assert mode is GenerationMode.NEGATIVE, "a valid request must be possible"


def _name(route: Route) -> str:
    return " ".join(route)


@pytest.mark.parametrize("route", ROUTES, ids=_name)
@pytest.mark.parametrize("who", ["admin", "user"])
async def test_a_route_behaves_as_the_document_says(who: str, route: Route, trial: Trial) -> None:
    method, path = route
    operation = trial.schema[path][method]
    for mode in GenerationMode:
        examples = EXAMPLES[who, mode]
        # A new user for each: requests may sign out, revoke tokens or change the password.
        person = await trial.harness.person(admin=who == "admin")
        known = await trial.path_parameters(path, person)
        headers = await trial.headers(person, who)
        examples = min(examples, SLOW_EXAMPLES) if route in SLOW else examples
        _try(trial, operation, mode, examples, headers, known)


def test_the_responses_were_varied_and_none_was_a_server_error(trial: Trial, served: ApiProcess) -> None:
    # Requests that always or never succeed would prove little.
    assert {200, 201, 202, 204, 400, 403, 409} <= set(trial.statuses)
    assert max(trial.statuses) < 500
    assert server_errors_of(served) == []


def test_excluded_routes_exist() -> None:
    assert set(EXCLUDED) < set(ACCESS)
