"""The metrics of a proxy process, and who can read them."""

import psutil
import pytest

from testkit.processes import free_port
from testkit.rows import new_workspace_id
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import FrontDoorHarness, Person
from tests.front_door.prometheus import sample, scrape
from tests.front_door.proxy_process import running_proxy
from tests.front_door.test_process import open_socket, through


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def environment(proxy_environment: dict[str, str], port: int) -> dict[str, str]:
    unused = f"http://127.0.0.1:{free_port()}"
    return {**proxy_environment, "CODEHUB_PROXY_METRICS_PORT": str(port), "CODEHUB_PROXY_API_URL": unused}


async def test_a_new_proxy_has_all_metrics(environment: dict[str, str], port: int) -> None:
    async with running_proxy(environment):
        found = await scrape(port)
        wanted = (
            "open_connections open_websockets resting_upstreams connections requests websockets errors bytes "
            "upstream_seconds upstream_failures refused_heads answers wakes uses use_flush_failures "
            "uses_pending"
        )
        assert {f"codehub_proxy_{name}" for name in wanted.split()} == set(found)
        assert {sample.value for family in found.values() for sample in family.samples} == {0}


async def test_metrics_count_what_happened(
    harness: FrontDoorHarness, environment: dict[str, str], port: int, ann: Person, bob: Person
) -> None:
    workspace_id, stopped = await harness.workspace(ann), await harness.workspace(ann, "STANDBY")
    async with running_ide(harness.root, workspace_id), running_proxy(environment) as proxy:
        front = through(harness, proxy)
        opened = await open_socket(front, ann, workspace_id)
        assert await sample(port, "open_connections") == await sample(port, "open_websockets") == 1
        await opened.close()
        assert (await front.request(f"/w/{workspace_id}/x", ann.bearer, method="PUT")).status == 200
        assert (await front.request(f"/w/{workspace_id}/x", bob.bearer)).status == 403
        assert (await front.request(f"/w/{workspace_id}/x")).status == 401
        assert (await front.request(f"/w/{new_workspace_id()}/x", ann.bearer)).status == 404
        assert (await front.request(f"/w/{stopped}/x", ann.bearer)).status == 503
        assert (await front.request(f"/w/{stopped}/x", ann.browser)).status == 202
        # No API is running.
        assert (await front.request("/api/v1/workspaces", ann.bearer)).status == 503
        reasons = ("forbidden", "stranger", "not_found", "stopped", "following", "unavailable")
        assert [await sample(port, "answers", reason=reason) for reason in reasons] == [1] * len(reasons)
        assert await sample(port, "wakes") == await sample(port, "websockets") == 1
        assert await sample(port, "requests") == 8
        assert await sample(port, "connections") >= 2
        assert await sample(port, "bytes", direction="in") > 0
        assert await sample(port, "bytes", direction="out") > 0
        assert await sample(port, "uses") == 1
        assert await sample(port, "errors") == 0


async def test_a_proxy_is_alive_while_the_api_is_down(
    harness: FrontDoorHarness, environment: dict[str, str]
) -> None:
    async with running_proxy(environment) as proxy:
        front = through(harness, proxy)
        assert (await front.request("/livez")).status == 200
        assert (await front.request("/healthz")).status == 503


async def test_latencies_are_a_histogram(
    harness: FrontDoorHarness, environment: dict[str, str], port: int, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id), running_proxy(environment) as proxy:
        for _ in range(5):
            assert (await through(harness, proxy).request(f"/w/{workspace_id}/x", ann.bearer)).status == 200
        family = (await scrape(port))["codehub_proxy_upstream_seconds"]
    assert family.type == "histogram"
    buckets = {
        float(each.labels["le"]): each.value for each in family.samples if each.name.endswith("_bucket")
    }
    assert list(buckets) == sorted(buckets)
    assert list(buckets.values()) == sorted(buckets.values())
    rest = {each.name.rpartition("_")[2]: each.value for each in family.samples if not each.labels}
    assert rest["count"] == buckets[float("inf")] == 5
    assert 0 < rest["sum"] < 5 * 30


@pytest.mark.parametrize(
    ("more", "interface"),
    [({}, "127.0.0.1"), ({"CODEHUB_PROXY_METRICS_HOST": "127.0.0.2"}, "127.0.0.2")],
    ids=["by-default", "as-set"],
)
async def test_metrics_are_served_on_one_interface_and_not_by_the_front_door(
    harness: FrontDoorHarness,
    environment: dict[str, str],
    port: int,
    ann: Person,
    more: dict[str, str],
    interface: str,
) -> None:
    async with running_proxy({**environment, **more, "CODEHUB_PROXY_HOST": "0.0.0.0"}) as proxy:  # noqa: S104
        listening = {
            (each.laddr.ip, each.laddr.port)
            for each in psutil.Process(proxy.process.pid).net_connections("inet")
            if each.status == psutil.CONN_LISTEN
        }
        assert listening == {(interface, port), ("0.0.0.0", proxy.port)}  # noqa: S104
        for path in ("/metrics", "/metrics?x=1"):
            response = await through(harness, proxy).request(path, ann.bearer)
            assert (response.status, "codehub_proxy" in response.text) == (404, False)
