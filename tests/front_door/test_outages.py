"""Servers that die behind a busy proxy: work goes on, new requests get 503 at worst, all heals by itself."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import pytest

from codehub.adapters.redis.activity import ACTIVITY_KEY
from codehub.adapters.redis.connection import create_client
from codehub.domain.conditions import WorkspaceId
from codehub.embedded.stack import EmbeddedStack
from codehub.services.identity import sign_out
from codehub.settings import Settings
from testkit.deployment import make_template, open_deployment
from testkit.network_faults import FaultRelay
from testkit.processes import free_port
from testkit.service_process import ServiceProcess, running_service
from testkit.waiting import until
from tests.api.process import running_api
from tests.chaos.conftest import Servers
from tests.front_door.fake_ide import Ide, running_ide
from tests.front_door.harness import FrontDoorHarness, Person, open_front_door
from tests.front_door.load_generator import under_load
from tests.front_door.proxy_process import running_proxy

OFTEN = {"CODEHUB_PROXY_ACTIVITY_SECONDS": "1"}


@pytest.fixture(scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Servers]:
    async with EmbeddedStack(tmp_path_factory.mktemp("stack"), Settings()) as stack:
        yield Servers(stack, await make_template(stack.environment["CODEHUB_DATABASE_URL"]))


@dataclass(frozen=True)
class Scene:
    """Ann, her workspace and its IDE; whoever stands in front of it comes later."""

    harness: FrontDoorHarness
    ann: Person
    workspace_id: WorkspaceId
    ide: Ide
    environment: dict[str, str]
    api_port: int

    def in_front(self, proxy: ServiceProcess) -> FrontDoorHarness:
        return replace(self.harness, url=proxy.base_url)

    async def ask(self, proxy: ServiceProcess) -> int:
        return (await self.in_front(proxy).ask(f"/w/{self.workspace_id}/x", self.ann.cookie)).status

    async def until_answered(self, proxy: ServiceProcess, status: int) -> list[int]:
        """All that was answered until then."""
        seen: list[int] = []

        async def answered() -> bool:
            seen.append(await self.ask(proxy))
            return seen[-1] == status

        await until(answered, f"{status} is answered")
        return seen


@pytest.fixture
async def scene(servers: Servers, tmp_path: Path) -> AsyncIterator[Scene]:
    async with open_deployment(servers.stack.environment, servers.template, tmp_path) as deployment:
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


async def test_the_api_is_restarted(scene: Scene) -> None:
    async with AsyncExitStack() as first, running_proxy(scene.environment) as proxy:
        api = await first.enter_async_context(running_api(scene.environment, port=scene.api_port))
        async with under_load(scene.in_front(proxy), scene.ann, scene.workspace_id) as load:
            api.process.kill()
            await load.until_seen("api", 503)
            async with running_api(scene.environment, port=scene.api_port):
                await load.until_well()
                seen = {name: Counter(statuses) for name, statuses in load.statuses.items()}
    assert set(seen["ide"]) == {200}
    assert set(seen["api"]) == {200, 503}


async def test_redis_is_restarted(scene: Scene, servers: Servers) -> None:
    async with (
        running_api(scene.environment, port=scene.api_port),
        running_service("proxy", {**scene.environment, **OFTEN}) as proxy,
        under_load(scene.in_front(proxy), scene.ann, scene.workspace_id) as load,
    ):
        await servers.stack.kill("redis")
        killed_at = datetime.now(UTC).timestamp()
        opened = await load.harness.ask(f"/w/{scene.workspace_id}/lab", scene.ann.browser)
        assert opened.status == 200
        await servers.stack.wait_ready("redis")
        await load.until_well()
        await until_noted_since(scene, killed_at)
        assert set(load.statuses["ide"]) == {200}
        assert set(load.statuses["api"]) <= {200, 503}
        assert "never retrieved" not in proxy.log.read_text()


async def until_noted_since(scene: Scene, moment: float) -> None:
    async with create_client(scene.environment["CODEHUB_REDIS_URL"]) as redis:

        async def noted() -> bool:
            noted_at = await redis.zscore(ACTIVITY_KEY, scene.workspace_id)
            # Kept to the millisecond, so what came right afterwards may be rounded to before.
            return noted_at is not None and noted_at > moment - 0.001

        await until(noted, "what was done meanwhile has arrived")


async def test_postgresql_is_restarted(scene: Scene, servers: Servers) -> None:
    async with (
        running_api(scene.environment, port=scene.api_port),
        running_proxy(scene.environment) as proxy,
        under_load(scene.in_front(proxy), scene.ann, scene.workspace_id) as load,
    ):
        await servers.stack.kill("postgres")
        await load.until_seen("api", 503)
        await servers.stack.wait_ready("postgres")
        await load.until_well()
        assert set(load.statuses["ide"]) <= {200, 503}
        assert set(load.statuses["api"]) == {200, 503}


async def test_a_session_revoked_before_an_outage_is_never_let_in_again(scene: Scene) -> None:
    url = scene.environment["CODEHUB_DATABASE_URL"]
    async with FaultRelay.to(url) as relay:
        environment = {**scene.environment, "CODEHUB_DATABASE_URL": relay.rewrite(url)}
        async with running_proxy(environment) as proxy:
            assert await scene.ask(proxy) == 200
            await relay.close()
            await sign_out(scene.harness.database, scene.ann.session_id, now=datetime.now(UTC))
            # Believed for seconds, then nobody can tell.
            seen = await scene.until_answered(proxy, 503)
            asked = len(scene.ide.seen)
            seen += [await scene.ask(proxy) for _ in range(20)]
            await relay.open()
            seen += await scene.until_answered(proxy, 401)
            assert [status for status, _ in groupby(seen)] in ([200, 503, 401], [503, 401])
            assert len(scene.ide.seen) == asked


async def test_a_proxy_starts_without_postgresql_and_redis_and_heals(scene: Scene) -> None:
    names = ("CODEHUB_DATABASE_URL", "CODEHUB_REDIS_URL")
    urls = [scene.environment[name] for name in names]
    async with FaultRelay.to(urls[0]) as postgresql, FaultRelay.to(urls[1]) as redis:
        for relay in (postgresql, redis):
            await relay.close()
        through = {
            names[0]: postgresql.rewrite(urls[0]),
            names[1]: redis.rewrite(urls[1]),
        }
        async with running_service("proxy", {**scene.environment, **OFTEN, **through}) as proxy:
            assert await scene.ask(proxy) == 503
            page = await scene.in_front(proxy).ask(f"/w/{scene.workspace_id}/", scene.ann.browser)
            assert (page.status, page.headers["Content-Type"]) == (503, "text/html; charset=utf-8")
            await postgresql.open()
            assert set(await scene.until_answered(proxy, 200)) <= {503, 200}
            began = datetime.now(UTC).timestamp()
            await scene.in_front(proxy).ask(f"/w/{scene.workspace_id}/", scene.ann.browser)
            await redis.open()
            await until_noted_since(scene, began)


async def test_a_database_that_has_gone_silent_holds_nobody_for_ever(scene: Scene) -> None:
    url = scene.environment["CODEHUB_DATABASE_URL"]
    async with FaultRelay.to(url) as relay:
        environment = {**scene.environment, "CODEHUB_DATABASE_URL": relay.rewrite(url)}
        async with running_proxy(environment) as proxy:
            assert await scene.ask(proxy) == 200
            relay.go_silent()
            await scene.until_answered(proxy, 503)
            # Those that are open stay silent; new ones are answered, as after a failover.
            relay.resume()
            assert set(await scene.until_answered(proxy, 200)) <= {503, 200}
