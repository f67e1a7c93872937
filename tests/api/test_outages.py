"""Outages under a running API: requests are kept or refused with a reason, and the API recovers by itself."""

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

from codehub.services.credentials import create_token
from testkit.deployment import BIN, Deployment, Servers, open_deployment
from testkit.network_faults import FaultRelay
from testkit.rows import BY
from testkit.waiting import until
from tests.api.process import ApiProcess, calling, follow, running_api
from worker.relay import APPLICATION_NAME, RELAY_LOCK

SWEEPS = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "2"}
WORKSPACES = "/api/v1/workspaces"
STANDBY = {"name": "home", "desired_state": "STANDBY", "image_ref": "code-server"}

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def tiny_ide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")


@dataclass(frozen=True)
class ApiDeployment:
    """A deployment with an API, and a client with a token of its owner."""

    deployment: Deployment
    api: ApiProcess
    client: httpx.AsyncClient

    async def create(self) -> str:
        response = await self.client.post(WORKSPACES, json=STANDBY)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    async def wait_for_phase(self, workspace_id: str, phase: str) -> None:
        async def arrived() -> bool:
            read = await self.client.get(f"{WORKSPACES}/{workspace_id}")
            document = read.json()
            return read.status_code == 200 and (document["phase"], document["operation"]) == (phase, "NONE")

        await until(arrived, f"{workspace_id} in {phase}")

    async def readiness(self) -> tuple[int, dict[str, bool]]:
        response = await self.client.get("/readyz")
        return response.status_code, {
            each["name"]: each["healthy"] for each in response.json()["dependencies"]
        }

    async def until_ready(self, *names: str) -> None:
        async def all_healthy() -> bool:
            status, healthy = await self.readiness()
            return status == 200 and all(healthy[name] for name in names)

        await until(all_healthy, f"{names} are healthy again")


@asynccontextmanager
async def open_api_deployment(
    servers: Servers, directory: Path, **through: str
) -> AsyncIterator[ApiDeployment]:
    """Open an API on its own deployment; `through` are settings for the API alone."""
    async with open_deployment(servers, directory, **SWEEPS) as deployment:
        token = await create_token(
            deployment.database, deployment.owner, "outages", expires_at=None, by=BY, now=datetime.now(UTC)
        )
        async with (
            running_api({**deployment.environment, **through}) as api,
            calling(api.base_url, authorization=f"Bearer {token.token}") as client,
        ):
            yield ApiDeployment(deployment, api, client)


async def test_without_temporal_requests_are_kept_and_carried_out_later(
    servers: Servers, tmp_path: Path
) -> None:
    async with open_api_deployment(servers, tmp_path) as deployed:
        with deployed.deployment.worker_process():
            workspace_id = await deployed.create()
            await deployed.wait_for_phase(workspace_id, "STANDBY")
            await servers.stack.kill("temporal")
            response = await deployed.client.patch(
                f"{WORKSPACES}/{workspace_id}", json={"desired_state": "ARCHIVED"}
            )
            assert (response.status_code, response.json()["desired_state"]) == (200, "ARCHIVED")
            assert (await deployed.client.post(WORKSPACES, json=STANDBY)).status_code == 201
            await servers.stack.wait_ready("temporal")
            await deployed.wait_for_phase(workspace_id, "ARCHIVED")


async def test_requests_do_not_wait_for_a_temporal_that_does_not_answer(
    servers: Servers, tmp_path: Path
) -> None:
    address = servers.stack.environment["CODEHUB_TEMPORAL_ADDRESS"]
    async with (
        FaultRelay.to(address) as relay,
        open_api_deployment(servers, tmp_path, CODEHUB_TEMPORAL_ADDRESS=relay.address) as deployed,
    ):
        workspace_id = await deployed.create()
        await deployed.until_ready("temporal")
        await relay.close()
        for desired in ("ARCHIVED", "RUNNING", "STANDBY"):
            response = await deployed.client.patch(
                f"{WORKSPACES}/{workspace_id}", json={"desired_state": desired}
            )
            assert response.status_code == 200, response.text
        status, healthy = await deployed.readiness()
        assert (status, healthy["temporal"], healthy["postgresql"]) == (200, False, True)
        await relay.open()
        await deployed.until_ready("temporal")
        # The sweep makes up for the lost wakes; the next wake arrives.
        with deployed.deployment.worker_process():
            await deployed.wait_for_phase(workspace_id, "STANDBY")


async def test_without_redis_the_api_works_and_streams_catch_up(servers: Servers, tmp_path: Path) -> None:
    async with open_api_deployment(servers, tmp_path) as deployed:
        with deployed.deployment.worker_process():
            workspace_id = await deployed.create()
            await deployed.wait_for_phase(workspace_id, "STANDBY")
            async with follow(deployed.client) as stream:
                await stream.next_named("snapshot")
                await servers.stack.kill("redis")
                path = f"{WORKSPACES}/{workspace_id}"
                response = await deployed.client.patch(path, json={"name": "while it was away"})
                assert response.status_code == 200
                assert (await deployed.client.get(path)).status_code == 200
                # On the same stream, without reconnecting.
                while (await stream.next_named("workspace_updated")).data["name"] != "while it was away":
                    pass
                await servers.stack.wait_ready("redis")
                await deployed.until_ready("redis")
                await deployed.client.patch(path, json={"name": "afterwards"})
                while (await stream.next_named("workspace_updated")).data["name"] != "afterwards":
                    pass


async def test_without_postgresql_requests_get_503_until_it_is_back(servers: Servers, tmp_path: Path) -> None:
    async with open_api_deployment(servers, tmp_path) as deployed:
        workspace_id = await deployed.create()
        await servers.stack.kill("postgres")
        refused = await deployed.client.get(f"{WORKSPACES}/{workspace_id}")
        assert_is_an_outage(refused)
        seen: list[httpx.Response] = []

        async def answers_again() -> bool:
            seen.append(await deployed.client.patch(f"{WORKSPACES}/{workspace_id}", json={"memo": "m"}))
            return seen[-1].status_code == 200

        await until(answers_again, "the API recovers without a restart")
        for response in seen[:-1]:
            assert_is_an_outage(response)
        await servers.stack.wait_ready("postgres")
        await deployed.until_ready("postgresql")


def assert_is_an_outage(response: httpx.Response) -> None:
    assert response.status_code == 503, response.text
    problem: dict[str, Any] = response.json()["error"]
    assert problem["code"] == "DEPENDENCY_UNAVAILABLE"
    assert problem["request_id"] == response.headers["x-request-id"]
    assert int(response.headers["retry-after"]) == problem["retry_after_seconds"] >= 1
    # The response must not reveal where the database is or how it failed.
    assert "postgres" not in response.text.lower()


async def test_without_postgresql_the_api_is_alive_but_not_ready(servers: Servers, tmp_path: Path) -> None:
    async with open_deployment(servers, tmp_path) as deployment:
        url = deployment.environment["CODEHUB_DATABASE_URL"]
        async with FaultRelay.to(url) as relay:
            environment = {**deployment.environment, "CODEHUB_DATABASE_URL": relay.rewrite(url)}
            async with running_api(environment) as api, calling(api.base_url) as client:
                assert (await client.get("/readyz")).status_code == 200
                await relay.close()
                response = await client.get("/readyz")
                assert (response.status_code, response.json()["ready"]) == (503, False)
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


async def test_a_request_whose_database_connection_is_cut_off_gets_503(
    servers: Servers, tmp_path: Path
) -> None:
    async with open_api_deployment(servers, tmp_path) as deployed:
        workspace_id = await deployed.create()
        async with deployed.deployment.database.engine.connect() as holder:
            await holder.exec_driver_sql("SELECT * FROM workspaces FOR UPDATE")
            waiting = asyncio.create_task(
                deployed.client.patch(f"{WORKSPACES}/{workspace_id}", json={"name": "new"})
            )

            async def cut_off() -> bool:
                result = await holder.exec_driver_sql(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
                return bool(result.scalar_one())

            await until(cut_off, "the waiting transaction is cut off")
            assert_is_an_outage(await waiting)
        assert (await deployed.client.get(f"{WORKSPACES}/{workspace_id}")).json()["name"] == "home"
        assert "a dependency is down" in deployed.api.log.read_text()


async def test_a_statement_timeout_is_an_outage_and_its_values_are_not_logged(
    servers: Servers, tmp_path: Path
) -> None:
    async with open_api_deployment(
        servers, tmp_path, CODEHUB_DATABASE_STATEMENT_TIMEOUT_SECONDS="1"
    ) as deployed:
        async with deployed.deployment.database.engine.connect() as holder:
            # Held until the API gives up.
            await holder.exec_driver_sql("LOCK TABLE workspaces IN SHARE MODE")
            response = await deployed.client.post(WORKSPACES, json={**STANDBY, "memo": "her-own-words"})
        assert_is_an_outage(response)
        log = deployed.api.log.read_text()
        assert "a dependency is down" in log
        assert "her-own-words" not in log
        await deployed.create()


async def test_without_s3_the_api_works_and_readiness_reports_it(servers: Servers, tmp_path: Path) -> None:
    url = servers.stack.environment["CODEHUB_S3_ENDPOINT_URL"]
    async with (
        FaultRelay.to(url) as relay,
        open_api_deployment(servers, tmp_path, CODEHUB_S3_ENDPOINT_URL=relay.rewrite(url)) as deployed,
    ):
        await deployed.until_ready("s3")
        await relay.close()
        status, healthy = await deployed.readiness()
        assert (status, healthy["s3"]) == (200, False)
        workspace_id = await deployed.create()
        assert (await deployed.client.get(f"{WORKSPACES}/{workspace_id}/archives")).json() == {"items": []}
        await relay.open()
        await deployed.until_ready("s3")


async def test_an_api_starts_without_temporal_redis_and_s3_and_recovers(
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
        async with open_api_deployment(servers, tmp_path, **through) as deployed:
            status, healthy = await deployed.readiness()
            assert (status, healthy) == (
                200,
                {"postgresql": True, "redis": False, "temporal": False, "s3": False},
            )
            workspace_id = await deployed.create()
            async with follow(deployed.client) as stream:
                snapshot = await stream.next_named("snapshot")
                assert [each["id"] for each in snapshot.data["workspaces"]] == [workspace_id]
                for relay in (temporal, redis, s3):
                    await relay.open()
                await deployed.until_ready("redis", "temporal", "s3")
                with deployed.deployment.worker_process():
                    await deployed.wait_for_phase(workspace_id, "STANDBY")
                    while (await stream.next_named("workspace_updated")).data["phase"] != "STANDBY":
                        pass


async def test_an_api_starts_without_postgresql_and_recovers(servers: Servers, tmp_path: Path) -> None:
    async with open_deployment(servers, tmp_path) as deployment:
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


async def test_the_relay_of_another_worker_replaces_a_killed_one(servers: Servers, tmp_path: Path) -> None:
    async with open_api_deployment(servers, tmp_path) as deployed:
        workspace_id = await deployed.create()
        with deployed.deployment.worker_process() as first:
            await until_relays(deployed.deployment, standing_by=1)
            with deployed.deployment.worker_process():
                await until_relays(deployed.deployment, standing_by=2)
                await deployed.wait_for_phase(workspace_id, "STANDBY")
                async with follow(deployed.client) as stream:
                    await stream.next_named("snapshot")
                    first.kill()
                    # Not relayed yet: the relay that listened is dead.
                    await deployed.client.patch(f"{WORKSPACES}/{workspace_id}", json={"name": "new"})
                    while (await stream.next_named("workspace_updated")).data["name"] != "new":
                        pass


async def until_relays(deployment: Deployment, standing_by: int) -> None:
    """Wait until this many relays are connected and one of them is elected."""
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
            # The view splits the lock's number into halves.
            holders = await session.scalar(text(elected), {"key": RELAY_LOCK & 0xFFFFFFFF})
        return (relays, holders) == (standing_by, 1)

    await until(so_many, f"{standing_by} relays, one of them elected")
