"""What Prometheus reads of a proxy process, and who else cannot."""

import psutil
import pytest

from testkit.processes import free_port
from testkit.rows import new_workspace_id
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import FrontDoorHarness, Person
from tests.front_door.prometheus import families, figure
from tests.front_door.proxy_process import running_proxy
from tests.front_door.test_process import in_front, open_socket


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def environment(proxy_environment: dict[str, str], port: int) -> dict[str, str]:
    nobody = f"http://127.0.0.1:{free_port()}"
    return {**proxy_environment, "CODEHUB_PROXY_METRICS_PORT": str(port), "CODEHUB_PROXY_API_URL": nobody}


async def test_a_new_proxy_has_all_figures(environment: dict[str, str], port: int) -> None:
    async with running_proxy(environment):
        found = await families(port)
        wanted = (
            "open_connections open_websockets resting_upstreams connections requests websockets errors bytes "
            "upstream_seconds upstream_failures refused_heads answers wakes uses use_flush_failures "
            "uses_pending"
        )
        assert {f"codehub_proxy_{name}" for name in wanted.split()} == set(found)
        assert {sample.value for family in found.values() for sample in family.samples} == {0}


async def test_figures_tell_what_happened(
    harness: FrontDoorHarness, environment: dict[str, str], port: int, ann: Person, bob: Person
) -> None:
    workspace_id, asleep = await harness.workspace(ann), await harness.workspace(ann, "STANDBY")
    async with running_ide(harness.root, workspace_id), running_proxy(environment) as proxy:
        front = in_front(harness, proxy)
        opened = await open_socket(front, ann, workspace_id)
        assert await figure(port, "open_connections") == await figure(port, "open_websockets") == 1
        await opened.close()
        assert (await front.ask(f"/w/{workspace_id}/x", ann.bearer, method="PUT")).status == 200
        assert (await front.ask(f"/w/{workspace_id}/x", bob.bearer)).status == 403
        assert (await front.ask(f"/w/{workspace_id}/x")).status == 401
        assert (await front.ask(f"/w/{new_workspace_id()}/x", ann.bearer)).status == 404
        assert (await front.ask(f"/w/{asleep}/x", ann.bearer)).status == 503
        assert (await front.ask(f"/w/{asleep}/x", ann.browser)).status == 202
        # Nobody is there.
        assert (await front.ask("/api/v1/workspaces", ann.bearer)).status == 503
        reasons = ("forbidden", "stranger", "not_found", "stopped", "following", "unavailable")
        assert [await figure(port, "answers", reason=reason) for reason in reasons] == [1] * len(reasons)
        assert await figure(port, "wakes") == await figure(port, "websockets") == 1
        assert await figure(port, "requests") == 8
        assert await figure(port, "connections") >= 2
        assert await figure(port, "bytes", direction="in") > 0
        assert await figure(port, "bytes", direction="out") > 0
        assert await figure(port, "uses") == 1
        assert await figure(port, "errors") == 0


async def test_latencies_are_a_histogram(
    harness: FrontDoorHarness, environment: dict[str, str], port: int, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id), running_proxy(environment) as proxy:
        for _ in range(5):
            assert (await in_front(harness, proxy).ask(f"/w/{workspace_id}/x", ann.bearer)).status == 200
        family = (await families(port))["codehub_proxy_upstream_seconds"]
    assert family.type == "histogram"
    buckets = {
        float(each.labels["le"]): each.value for each in family.samples if each.name.endswith("_bucket")
    }
    assert list(buckets) == sorted(buckets)
    assert list(buckets.values()) == sorted(buckets.values())
    rest = {each.name.rpartition("_")[2]: each.value for each in family.samples if not each.labels}
    assert rest["count"] == buckets[float("inf")] == 5
    assert 0 < rest["sum"] < 5 * 30


async def test_only_this_machine_may_ask_and_not_through_the_front_door(
    harness: FrontDoorHarness, environment: dict[str, str], port: int, ann: Person
) -> None:
    async with running_proxy({**environment, "CODEHUB_PROXY_HOST": "0.0.0.0"}) as proxy:  # noqa: S104
        listening = {
            (each.laddr.ip, each.laddr.port)
            for each in psutil.Process(proxy.process.pid).net_connections("inet")
            if each.status == psutil.CONN_LISTEN
        }
        assert listening == {("127.0.0.1", port), ("0.0.0.0", proxy.port)}  # noqa: S104
        for path in ("/metrics", "/metrics?x=1"):
            answer = await in_front(harness, proxy).ask(path, ann.bearer)
            assert (answer.status, "codehub_proxy" in answer.text) == (404, False)
