"""Servers that die under a running API: requests are kept, what cannot be served says so, all heals."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from codehub.embedded.stack import EmbeddedStack
from codehub.services.credentials import create_token
from codehub.settings import Settings
from testkit.deployment import BIN, Deployment, make_template, open_deployment
from testkit.network_faults import FaultRelay
from testkit.waiting import until
from tests.api.process import ApiProcess, calling, follow, running_api
from tests.chaos.conftest import Servers
from worker.relay import APPLICATION_NAME, RELAY_LOCK

SWEEPS = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "2"}
WORKSPACES = "/api/v1/workspaces"
STANDBY = {"name": "home", "desired_state": "STANDBY", "image_ref": "code-server"}

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Servers]:
    async with EmbeddedStack(tmp_path_factory.mktemp("stack"), Settings()) as stack:
        yield Servers(stack, await make_template(stack.environment["CODEHUB_DATABASE_URL"]))


@pytest.fixture(autouse=True)
def tiny_ide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")


@dataclass(frozen=True)
class Place:
    """A deployment with its API, and a client with a token of the deployment's owner."""

    deployment: Deployment
    api: ApiProcess
    client: httpx.AsyncClient

    async def create(self) -> str:
        answer = await self.client.post(WORKSPACES, json=STANDBY)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def arrive(self, workspace_id: str, phase: str) -> None:
        async def arrived() -> bool:
            read = await self.client.get(f"{WORKSPACES}/{workspace_id}")
            document = read.json()
            return read.status_code == 200 and (document["phase"], document["operation"]) == (phase, "NONE")

        await until(arrived, f"{workspace_id} in {phase}")

    async def readiness(self) -> tuple[int, dict[str, bool]]:
        answer = await self.client.get("/readyz")
        return answer.status_code, {each["name"]: each["healthy"] for each in answer.json()["dependencies"]}

    async def until_ready(self, *names: str) -> None:
        async def all_well() -> bool:
            status, healthy = await self.readiness()
            return status == 200 and all(healthy[name] for name in names)

        await until(all_well, f"{names} are well again")


@asynccontextmanager
async def open_place(servers: Servers, directory: Path, **through: str) -> AsyncIterator[Place]:
    """An API on a deployment of its own; `through` leads the API, and nobody else, another way."""
    async with open_deployment(
        servers.stack.environment, servers.template, directory, **SWEEPS
    ) as deployment:
        token = await create_token(
            deployment.database, deployment.owner, "outages", expires_at=None, now=datetime.now(UTC)
        )
        async with (
            running_api({**deployment.environment, **through}) as api,
            calling(api.base_url, authorization=f"Bearer {token.token}") as client,
        ):
            yield Place(deployment, api, client)


async def test_without_temporal_what_is_asked_for_is_kept_and_carried_out_later(
    servers: Servers, tmp_path: Path
) -> None:
    async with open_place(servers, tmp_path) as place:
        with place.deployment.worker_process():
            workspace_id = await place.create()
            await place.arrive(workspace_id, "STANDBY")
            await servers.stack.kill("temporal")
            answer = await place.client.patch(
                f"{WORKSPACES}/{workspace_id}", json={"desired_state": "ARCHIVED"}
            )
            assert (answer.status_code, answer.json()["desired_state"]) == (200, "ARCHIVED")
            assert (await place.client.post(WORKSPACES, json=STANDBY)).status_code == 201
            await servers.stack.wait_ready("temporal")
            await place.arrive(workspace_id, "ARCHIVED")


async def test_nobody_waits_for_a_temporal_that_does_not_answer(servers: Servers, tmp_path: Path) -> None:
    address = servers.stack.environment["CODEHUB_TEMPORAL_ADDRESS"]
    async with (
        FaultRelay.to(address) as relay,
        open_place(servers, tmp_path, CODEHUB_TEMPORAL_ADDRESS=relay.address) as place,
    ):
        workspace_id = await place.create()
        await place.until_ready("temporal")
        await relay.close()
        for desired in ("ARCHIVED", "RUNNING", "STANDBY"):
            answer = await place.client.patch(f"{WORKSPACES}/{workspace_id}", json={"desired_state": desired})
            assert answer.status_code == 200, answer.text
        status, healthy = await place.readiness()
        assert (status, healthy["temporal"], healthy["postgresql"]) == (200, False, True)
        await relay.open()
        await place.until_ready("temporal")
        # The wakes that were lost are made up for by the sweep, the next one arrives by itself.
        with place.deployment.worker_process():
            await place.arrive(workspace_id, "STANDBY")


async def test_without_redis_the_api_works_and_streams_catch_up(servers: Servers, tmp_path: Path) -> None:
    async with open_place(servers, tmp_path) as place:
        with place.deployment.worker_process():
            workspace_id = await place.create()
            await place.arrive(workspace_id, "STANDBY")
            async with follow(place.client) as stream:
                await stream.next_named("snapshot")
                await servers.stack.kill("redis")
                path = f"{WORKSPACES}/{workspace_id}"
                answer = await place.client.patch(path, json={"name": "while it was away"})
                assert answer.status_code == 200
                assert (await place.client.get(path)).status_code == 200
                # The same stream: nobody has to come back for what was missed.
                while (await stream.next_named("workspace_updated")).data["name"] != "while it was away":
                    pass
                await servers.stack.wait_ready("redis")
                await place.until_ready("redis")
                await place.client.patch(path, json={"name": "afterwards"})
                while (await stream.next_named("workspace_updated")).data["name"] != "afterwards":
                    pass


async def test_without_postgresql_it_says_so_and_heals(servers: Servers, tmp_path: Path) -> None:
    async with open_place(servers, tmp_path) as place:
        workspace_id = await place.create()
        await servers.stack.kill("postgres")
        refused = await place.client.get(f"{WORKSPACES}/{workspace_id}")
        assert_is_an_outage(refused)
        seen: list[httpx.Response] = []

        async def answers_again() -> bool:
            seen.append(await place.client.patch(f"{WORKSPACES}/{workspace_id}", json={"memo": "m"}))
            return seen[-1].status_code == 200

        await until(answers_again, "the API heals without a restart")
        for answer in seen[:-1]:
            assert_is_an_outage(answer)
        await servers.stack.wait_ready("postgres")
        await place.until_ready("postgresql")


def assert_is_an_outage(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    problem: dict[str, Any] = answer.json()["error"]
    assert problem["code"] == "DEPENDENCY_UNAVAILABLE"
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert int(answer.headers["retry-after"]) == problem["retry_after_seconds"] >= 1
    # Where the database is, and how it failed, is nobody's business.
    assert "postgres" not in answer.text.lower()


async def test_while_postgresql_is_away_it_is_alive_but_not_ready(servers: Servers, tmp_path: Path) -> None:
    async with open_deployment(servers.stack.environment, servers.template, tmp_path) as deployment:
        url = deployment.environment["CODEHUB_DATABASE_URL"]
        async with FaultRelay.to(url) as relay:
            environment = {**deployment.environment, "CODEHUB_DATABASE_URL": relay.rewrite(url)}
            async with running_api(environment) as api, calling(api.base_url) as client:
                assert (await client.get("/readyz")).status_code == 200
                await relay.close()
                answer = await client.get("/readyz")
                assert (answer.status_code, answer.json()["ready"]) == (503, False)
                assert (await client.get("/healthz")).status_code == 200
                metrics = await client.get("/metrics")
                assert "codehub_database_up 0.0" in metrics.text
                form = {"username": "ada", "password": "correct horse"}
                assert_is_an_outage(await client.post("/api/v1/login", json=form))
                await relay.open()

                async def ready() -> bool:
                    return (await client.get("/readyz")).status_code == 200

                await until(ready, "it is ready again")
                assert "codehub_database_up 1.0" in (await client.get("/metrics")).text


async def test_a_request_whose_connection_is_cut_off_is_an_outage_too(
    servers: Servers, tmp_path: Path
) -> None:
    async with open_place(servers, tmp_path) as place:
        workspace_id = await place.create()
        async with place.deployment.database.engine.connect() as holder:
            await holder.exec_driver_sql("SELECT * FROM workspaces FOR UPDATE")
            waiting = asyncio.create_task(
                place.client.patch(f"{WORKSPACES}/{workspace_id}", json={"name": "new"})
            )

            async def cut_off() -> bool:
                result = await holder.exec_driver_sql(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
                return bool(result.scalar_one())

            await until(cut_off, "the waiting transaction is cut off")
            assert_is_an_outage(await waiting)
        assert (await place.client.get(f"{WORKSPACES}/{workspace_id}")).json()["name"] == "home"
        assert "a dependency is down" in place.api.log.read_text()


async def test_a_statement_that_takes_too_long_is_an_outage_whose_values_are_not_logged(
    servers: Servers, tmp_path: Path
) -> None:
    async with open_place(servers, tmp_path, CODEHUB_DATABASE_STATEMENT_TIMEOUT_SECONDS="1") as place:
        async with place.deployment.database.engine.connect() as holder:
            # Held until the API gives up.
            await holder.exec_driver_sql("LOCK TABLE workspaces IN SHARE MODE")
            answer = await place.client.post(WORKSPACES, json={**STANDBY, "memo": "her-own-words"})
        assert_is_an_outage(answer)
        log = place.api.log.read_text()
        assert "a dependency is down" in log
        assert "her-own-words" not in log
        await place.create()


async def test_without_s3_the_api_works_and_readiness_tells(servers: Servers, tmp_path: Path) -> None:
    url = servers.stack.environment["CODEHUB_S3_ENDPOINT_URL"]
    async with (
        FaultRelay.to(url) as relay,
        open_place(servers, tmp_path, CODEHUB_S3_ENDPOINT_URL=relay.rewrite(url)) as place,
    ):
        await place.until_ready("s3")
        await relay.close()
        status, healthy = await place.readiness()
        assert (status, healthy["s3"]) == (200, False)
        workspace_id = await place.create()
        assert (await place.client.get(f"{WORKSPACES}/{workspace_id}/archives")).json() == {"items": []}
        await relay.open()
        await place.until_ready("s3")


async def test_an_api_starts_without_temporal_redis_and_s3_and_heals(
    servers: Servers, tmp_path: Path
) -> None:
    shared = servers.stack.environment
    names = ("CODEHUB_TEMPORAL_ADDRESS", "CODEHUB_REDIS_URL", "CODEHUB_S3_ENDPOINT_URL")
    async with (
        FaultRelay.to(shared[names[0]]) as temporal,
        FaultRelay.to(shared[names[1]]) as redis,
        FaultRelay.to(shared[names[2]]) as s3,
    ):
        through = {
            names[0]: temporal.address,
            names[1]: redis.rewrite(shared[names[1]]),
            names[2]: s3.rewrite(shared[names[2]]),
        }
        for relay in (temporal, redis, s3):
            await relay.close()
        async with open_place(servers, tmp_path, **through) as place:
            status, healthy = await place.readiness()
            assert (status, healthy) == (
                200,
                {"postgresql": True, "redis": False, "temporal": False, "s3": False},
            )
            workspace_id = await place.create()
            async with follow(place.client) as stream:
                snapshot = await stream.next_named("snapshot")
                assert [each["id"] for each in snapshot.data["workspaces"]] == [workspace_id]
                for relay in (temporal, redis, s3):
                    await relay.open()
                await place.until_ready("redis", "temporal", "s3")
                with place.deployment.worker_process():
                    await place.arrive(workspace_id, "STANDBY")
                    while (await stream.next_named("workspace_updated")).data["phase"] != "STANDBY":
                        pass


async def test_an_api_starts_without_postgresql_and_heals(servers: Servers, tmp_path: Path) -> None:
    async with open_deployment(servers.stack.environment, servers.template, tmp_path) as deployment:
        url = deployment.environment["CODEHUB_DATABASE_URL"]
        async with FaultRelay.to(url) as relay:
            await relay.close()
            environment = {**deployment.environment, "CODEHUB_DATABASE_URL": relay.rewrite(url)}
            async with running_api(environment) as api, calling(api.base_url) as client:
                assert (await client.get("/readyz")).status_code == 503
                await relay.open()

                async def ready() -> bool:
                    return (await client.get("/readyz")).status_code == 200

                await until(ready, "it is ready")


async def test_a_killed_relay_is_followed_by_that_of_another_worker(servers: Servers, tmp_path: Path) -> None:
    async with open_place(servers, tmp_path) as place:
        workspace_id = await place.create()
        with place.deployment.worker_process() as first:
            await until_relays(place.deployment, standing_by=1)
            with place.deployment.worker_process():
                await until_relays(place.deployment, standing_by=2)
                await place.arrive(workspace_id, "STANDBY")
                async with follow(place.client) as stream:
                    await stream.next_named("snapshot")
                    first.kill()
                    # Told by nobody yet: the one that listened is dead.
                    await place.client.patch(f"{WORKSPACES}/{workspace_id}", json={"name": "new"})
                    while (await stream.next_named("workspace_updated")).data["name"] != "new":
                        pass


async def until_relays(deployment: Deployment, standing_by: int) -> None:
    """Until so many are connected and one of them is elected."""
    connected = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE application_name = :name AND datname = current_database()"
    )
    elected = (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = :key "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )

    async def so_many() -> bool:
        async with deployment.database.transaction() as session:
            relays = await session.scalar(text(connected), {"name": APPLICATION_NAME})
            # The lock's number is split into halves there; ours fits into less than five bytes.
            holders = await session.scalar(text(elected), {"key": RELAY_LOCK & 0xFFFFFFFF})
        return (relays, holders) == (standing_by, 1)

    await until(so_many, f"{standing_by} relays, one of them elected")
