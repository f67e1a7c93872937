"""Liveness, readiness, metrics, and logs with request ids but no secrets."""

import asyncio
import json
from dataclasses import replace
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text

from api.app import create_app
from api.health_checks import Dependency
from codehub.db.events import EventKind
from codehub.db.models import Archive
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason, Operation, Phase
from tests.api.harness import ORIGIN, PASSWORD, ApiHarness, Person
from tests.api.process import calling, running_api
from tests.api.workspace_rows import LONG_AGO, mark_deleted, set_columns, write_event

AGE_TRAIL = text("UPDATE workspace_events SET at = :at")


@pytest.fixture
def harness(harness: ApiHarness) -> ApiHarness:
    return harness.with_cheap_passwords()


async def series(client: httpx.AsyncClient) -> dict[str, float]:
    """Read all metrics by their full names."""
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in response.text.splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


async def test_a_running_process_is_alive(harness: ApiHarness) -> None:
    response = await harness.stranger().get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


async def test_readiness_lists_each_dependency_without_its_version(harness: ApiHarness) -> None:
    response = await harness.stranger().get("/readyz")
    assert response.status_code == 200
    healths = response.json()["dependencies"]
    assert {each["name"] for each in healths} == {"postgresql", "redis", "temporal", "s3"}
    assert {(each["healthy"], each["version"], each["error"]) for each in healths} == {(True, None, None)}


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/%6detrics"])
async def test_pages_for_operators_are_not_served_through_the_proxy(harness: ApiHarness, path: str) -> None:
    client = harness.stranger()
    assert (await client.get(path)).status_code == 200
    refused = await client.get(path, headers={"Via": "1.1 codehub"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize(("required", "status"), [(True, 503), (False, 200)])
async def test_only_a_required_dependency_makes_the_api_unready(
    harness: ApiHarness, required: bool, status: int
) -> None:
    async def ask() -> str:
        raise Transient(ErrorReason.UNREACHABLE, "redis://:password@host does not answer")

    context = replace(harness.context, dependencies=[Dependency("redis", required, ask)])
    transport = httpx.ASGITransport(app=create_app(context))
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        response = await client.get("/readyz")
    assert (response.status_code, response.json()["ready"]) == (status, not required)
    assert "password" not in response.text


async def test_metrics_count_workspaces_operations_and_requests(harness: ApiHarness) -> None:
    client = harness.stranger()
    # Counting begins with the first scrape.
    await series(client)
    ada = await harness.person()
    ids = [(await ada.create())["id"] for _ in range(4)]
    await mark_deleted(harness.context.database, ids[3], Phase.DELETED)
    await set_columns(harness.context.database, ids[0], phase=Phase.RUNNING)
    await remove_archive(harness, ids[0])
    for kind, count in {
        EventKind.OPERATION_CLAIMED: 3,
        EventKind.OPERATION_COMPLETED: 2,
        EventKind.OPERATION_FAILED: 1,
        EventKind.ATTEMPT_FAILED: 4,
    }.items():
        for _ in range(count):
            await write_event(harness.context.database, ids[0], kind, LONG_AGO, Operation.STARTING)
    await write_event(harness.context.database, ids[0], EventKind.STATE_REQUESTED, LONG_AGO, actor="ttl")
    await write_event(harness.context.database, ids[0], EventKind.STATE_REQUESTED, LONG_AGO, actor="ada")
    await settle_trail(harness)
    figures = await series(client)
    assert figures['codehub_workspaces{phase="RUNNING"}'] == 1
    assert figures['codehub_workspaces{phase="PENDING"}'] == 2
    assert figures['codehub_workspaces{phase="ERROR"}'] == 0
    assert figures["codehub_workspaces_needing_person"] == 0
    assert 'codehub_workspaces{phase="DELETED"}' not in figures
    for result, count in {"started": 3, "completed": 2, "failed": 1, "attempt_failed": 4}.items():
        assert figures[f'codehub_operations_total{{operation="STARTING",result="{result}"}}'] == count
    assert figures["codehub_idle_requests_total"] == 1
    assert figures["codehub_archives_collected"] == 1
    assert figures["codehub_database_up"] == 1
    created = 'codehub_http_requests_total{code="201",method="POST",route="/api/v1/workspaces"}'
    assert figures[created] == 4
    timed = 'codehub_http_request_seconds_count{method="POST",route="/api/v1/workspaces"}'
    assert figures[timed] == 4
    assert ids[0] not in str(figures)


async def test_concurrent_scrapes_count_nothing_twice(harness: ApiHarness) -> None:
    client = harness.stranger()
    await series(client)
    workspace_id = str(uuid4())
    kind = EventKind.OPERATION_CLAIMED
    await write_event(harness.context.database, workspace_id, kind, LONG_AGO, Operation.STARTING)
    await asyncio.gather(*(series(client) for _ in range(8)))
    figures = await series(client)
    assert figures['codehub_operations_total{operation="STARTING",result="started"}'] == 1


async def test_requests_to_unknown_paths_share_one_series(harness: ApiHarness) -> None:
    client = harness.stranger()
    for number in range(3):
        await client.get(f"/api/v1/nowhere/{number}")
    figures = await series(client)
    assert figures['codehub_http_requests_total{code="404",method="GET",route="unknown"}'] == 3


async def remove_archive(harness: ApiHarness, workspace_id: str) -> None:
    async with harness.context.database.transaction() as session:
        session.add(
            Archive(
                key="archives/gone", workspace_id=workspace_id, archive_op_id=uuid4(), deleted_at=LONG_AGO
            )
        )


async def settle_trail(harness: ApiHarness) -> None:
    """Make the audit entries old enough to be counted."""
    async with harness.context.database.transaction() as session:
        await session.execute(AGE_TRAIL, {"at": LONG_AGO})


async def test_log_lines_have_the_request_id_and_no_secrets(
    harness: ApiHarness, api_environment: dict[str, str]
) -> None:
    ada = await harness.person("ada")
    environment = {**api_environment, "CODEHUB_LOG_FORMAT": "json", "CODEHUB_LOG_LEVEL": "debug"}
    async with running_api(environment) as api:
        async with calling(api.base_url) as client:
            secrets = await use_every_secret(client, ada)
            request_id = "from-the-front-door"
            response = await client.get("/api/v1/session", headers={"X-Request-ID": request_id})
            assert response.headers["x-request-id"] == request_id
            made_up = (await client.get("/api/v1/workspaces", headers={"X-Request-ID": "x y"})).headers
        api.stop()
        assert await api.wait_ended() == 0
        written = api.log.read_text()
        lines = api.log_lines()
    assert len(lines) == len(written.splitlines()), "not every line is JSON"
    by_request = {line["request_id"]: line for line in lines if "request_id" in line}
    assert by_request[request_id]["route"] == "/api/v1/session"
    assert by_request[request_id]["user"] == "ada"
    assert made_up["x-request-id"] in by_request
    assert "x y" not in by_request
    assert {"time", "level", "logger", "message", "method", "status", "milliseconds"} <= set(
        by_request[request_id]
    )
    for name, secret in secrets.items():
        assert secret not in written, f"{name} is in the log"


async def use_every_secret(client: httpx.AsyncClient, person: Person) -> dict[str, str]:
    """Send secrets in every way that might be logged, and return them."""
    form = {"username": person.username, "password": PASSWORD}
    signed_in = await client.post("/api/v1/login", json=form)
    csrf = signed_in.json()["csrf_token"]
    headers = {"X-CSRF-Token": csrf}
    token = (await client.post("/api/v1/tokens", json={"name": "t"}, headers=headers)).json()["token"]
    wrong = "wrong horse battery"
    await client.post("/api/v1/login", json={"username": person.username, "password": wrong})
    await client.post("/api/v1/login", json={"username": "nobody", "password": wrong, "more": PASSWORD})
    await client.post(
        "/api/v1/login", content=json.dumps(form)[:-1], headers={"Content-Type": "application/json"}
    )
    new = "another horse battery"
    change = {"current_password": wrong, "new_password": new}
    await client.post("/api/v1/password", json=change, headers=headers)
    await client.post("/api/v1/password", json={**change, "current_password": PASSWORD}, headers=headers)
    await client.get("/api/v1/session", headers={"Authorization": f"Bearer {token}"})
    await client.get("/api/v1/session", headers={"Authorization": f"Bearer {token}x"})
    await client.get("/api/v1/workspaces", params={"q": "what-she-seeks", "token": token})
    await client.get(f"/api/v1/nowhere/{token}")
    memo = "her-own-words"
    await client.post("/api/v1/workspaces", json={"name": "home", "memo": memo}, headers=headers)
    return {
        "the password": PASSWORD,
        "a wrong password": wrong,
        "the new password": new,
        "the cookie": client.cookies["codehub_session"],
        "the CSRF token": csrf,
        "the token": token,
        "a memo": memo,
        "a search": "what-she-seeks",
    }
