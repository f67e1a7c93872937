"""Outages behind a busy proxy: open connections continue, new requests get 503 at worst, all recovers."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import pytest

from codehub.adapters.redis.activity import ACTIVITY_KEY
from codehub.adapters.redis.connection import create_client
from codehub.domain.conditions import WorkspaceId
from codehub.services.identity import sign_out
from testkit.deployment import Servers, open_deployment
from testkit.network_faults import FaultRelay
from testkit.processes import free_port
from testkit.rows import BY
from testkit.service_process import ServiceProcess, running_service
from testkit.waiting import until
from tests.api.process import running_api
from tests.front_door.fake_ide import FakeIde, running_ide
from tests.front_door.harness import FrontDoorHarness, Person, open_front_door
from tests.front_door.load_generator import generating_load
from tests.front_door.proxy_process import running_proxy
from tests.front_door.test_process import through

FLUSH_OFTEN = {"CODEHUB_PROXY_ACTIVITY_SECONDS": "1"}


@dataclass(frozen=True)
class Scene:
    """Ann, her workspace and its IDE, without a proxy yet."""

    harness: FrontDoorHarness
    ann: Person
    workspace_id: WorkspaceId
    ide: FakeIde
    environment: dict[str, str]
    api_port: int

    def through(self, proxy: ServiceProcess) -> FrontDoorHarness:
        return through(self.harness, proxy)

    async def request(self, proxy: ServiceProcess) -> int:
        return (await self.through(proxy).request(f"/w/{self.workspace_id}/x", self.ann.cookie)).status

    async def wait_for_status(self, proxy: ServiceProcess, status: int) -> list[int]:
        """Send requests until one gets this status; return all statuses."""
        seen: list[int] = []

        async def has_status() -> bool:
            seen.append(await self.request(proxy))
            return seen[-1] == status

        await until(has_status, f"a response has status {status}")
        return seen


@pytest.fixture
async def scene(servers: Servers, tmp_path: Path) -> AsyncIterator[Scene]:
    async with open_deployment(servers, tmp_path) as deployment:
        port = free_port()
        api = {
            "CODEHUB_PROXY_API_URL": f"http://127.0.0.1:{port}",
            "CODEHUB_API_REQUESTS_PER_SECOND": "100000",
        }
        environment = {**deployment.environment, **api}
        async with open_front_door(environment) as harness:
            ann = await harness.person()
            workspace_id = await harness.workspace(ann)
            async with running_ide(harness.root, workspace_id) as ide:
                yield Scene(harness, ann, workspace_id, ide, environment, port)


async def test_a_restart_of_the_api(scene: Scene) -> None:
    async with AsyncExitStack() as first, running_proxy(scene.environment) as proxy:
        api = await first.enter_async_context(running_api(scene.environment, port=scene.api_port))
        async with generating_load(scene.through(proxy), scene.ann, scene.workspace_id) as load:
            api.process.kill()
            await load.wait_until_seen("api", 503)
            async with running_api(scene.environment, port=scene.api_port):
                await load.wait_until_healthy()
                seen = {name: Counter(statuses) for name, statuses in load.statuses.items()}
    assert set(seen["ide"]) == {200}
    assert set(seen["api"]) == {200, 503}


async def test_a_restart_of_redis(scene: Scene, servers: Servers) -> None:
    async with (
        running_api(scene.environment, port=scene.api_port),
        running_service("proxy", {**scene.environment, **FLUSH_OFTEN}) as proxy,
        generating_load(scene.through(proxy), scene.ann, scene.workspace_id) as load,
    ):
        await servers.stack.kill("redis")
        killed_at = datetime.now(UTC).timestamp()
        opened = await load.harness.request(f"/w/{scene.workspace_id}/lab", scene.ann.browser)
        assert opened.status == 200
        await servers.stack.wait_ready("redis")
        await load.wait_until_healthy()
        await wait_until_recorded_since(scene, killed_at)
        assert set(load.statuses["ide"]) == {200}
        assert set(load.statuses["api"]) <= {200, 503}
        assert "never retrieved" not in proxy.log.read_text()


async def wait_until_recorded_since(scene: Scene, moment: float) -> None:
    async with create_client(scene.environment["CODEHUB_REDIS_URL"]) as redis:

        async def recorded() -> bool:
            recorded_at = await redis.zscore(ACTIVITY_KEY, scene.workspace_id)
            # Rounded to the millisecond, so it may seem slightly earlier.
            return recorded_at is not None and recorded_at > moment - 0.001

        await until(recorded, "the activity during the outage has arrived")


async def test_a_restart_of_postgresql(scene: Scene, servers: Servers) -> None:
    async with (
        running_api(scene.environment, port=scene.api_port),
        running_proxy(scene.environment) as proxy,
        generating_load(scene.through(proxy), scene.ann, scene.workspace_id) as load,
    ):
        await servers.stack.kill("postgres")
        await load.wait_until_seen("api", 503)
        await servers.stack.wait_ready("postgres")
        await load.wait_until_healthy()
        assert set(load.statuses["ide"]) <= {200, 503}
        assert set(load.statuses["api"]) == {200, 503}


async def test_a_session_revoked_during_an_outage_is_never_admitted_again(scene: Scene) -> None:
    url = scene.environment["CODEHUB_DATABASE_URL"]
    async with FaultRelay.to(url) as relay:
        environment = {**scene.environment, "CODEHUB_DATABASE_URL": relay.rewrite(url)}
        async with running_proxy(environment) as proxy:
            assert await scene.request(proxy) == 200
            await relay.close()
            await sign_out(scene.harness.database, scene.ann.session_id, by=BY, now=datetime.now(UTC))
            # Cached for seconds; after that, nothing can validate it.
            seen = await scene.wait_for_status(proxy, 503)
            forwarded = len(scene.ide.requests)
            seen += [await scene.request(proxy) for _ in range(20)]
            await relay.open()
            seen += await scene.wait_for_status(proxy, 401)
            assert [status for status, _ in groupby(seen)] in ([200, 503, 401], [503, 401])
            assert len(scene.ide.requests) == forwarded


async def test_a_proxy_starts_without_postgresql_and_redis_and_recovers(scene: Scene) -> None:
    names = ("CODEHUB_DATABASE_URL", "CODEHUB_REDIS_URL")
    urls = [scene.environment[name] for name in names]
    async with FaultRelay.to(urls[0]) as postgresql, FaultRelay.to(urls[1]) as redis:
        for relay in (postgresql, redis):
            await relay.close()
        through = {
            names[0]: postgresql.rewrite(urls[0]),
            names[1]: redis.rewrite(urls[1]),
        }
        async with running_service("proxy", {**scene.environment, **FLUSH_OFTEN, **through}) as proxy:
            assert await scene.request(proxy) == 503
            page = await scene.through(proxy).request(f"/w/{scene.workspace_id}/", scene.ann.browser)
            assert (page.status, page.headers["Content-Type"]) == (503, "text/html; charset=utf-8")
            await postgresql.open()
            assert set(await scene.wait_for_status(proxy, 200)) <= {503, 200}
            began = datetime.now(UTC).timestamp()
            await scene.through(proxy).request(f"/w/{scene.workspace_id}/", scene.ann.browser)
            await redis.open()
            await wait_until_recorded_since(scene, began)


async def test_requests_do_not_hang_when_the_database_goes_silent(scene: Scene) -> None:
    url = scene.environment["CODEHUB_DATABASE_URL"]
    async with FaultRelay.to(url) as relay:
        environment = {**scene.environment, "CODEHUB_DATABASE_URL": relay.rewrite(url)}
        async with running_proxy(environment) as proxy:
            assert await scene.request(proxy) == 200
            relay.go_silent()
            await scene.wait_for_status(proxy, 503)
            # Open connections stay silent; new ones work, as after a failover.
            relay.resume()
            assert set(await scene.wait_for_status(proxy, 200)) <= {503, 200}
