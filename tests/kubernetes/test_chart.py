"""The Helm chart on a real cluster: installing, a workspace, an upgrade under load, uninstalling."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from codehub.bootstrap import open_database
from codehub.clock import utc_now
from codehub.services.audit import Actor
from codehub.services.credentials import create_token
from codehub.settings import load_settings
from testkit.deployment import Servers, clone_database, register_namespace
from testkit.docker_engine import JOB_IMAGE, docker, need_docker
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.provisioner import DEFAULT_CLASS
from testkit.rows import add_user
from testkit.waiting import until
from tests.kubernetes.chart import CONTROL_PLANE_IMAGE, Chart, load_images, new_release, reachable_servers
from tests.kubernetes.conftest import IDE_IMAGE

PARTS = ("api", "proxy", "worker", "egress")
REPLICAS = 2
REQUEST_SECONDS = 60


@asynccontextmanager
async def fresh_stores(servers: Servers, cluster: Cluster) -> AsyncIterator[dict[str, str]]:
    """Return the environment of an empty database and an own namespace of Temporal, as Pods reach them."""
    name = f"chart_{uuid4().hex}"
    shared = servers.stack.environment
    database_url = await clone_database(shared["CODEHUB_DATABASE_URL"], "template1", name)
    own = {**shared, "CODEHUB_DATABASE_URL": database_url, "CODEHUB_TEMPORAL_NAMESPACE": name}
    await register_namespace(load_settings(own))
    async with reachable_servers(cluster, own) as environment:
        yield environment


async def token_of_new_user(environment: Mapping[str, str]) -> str:
    async with open_database(load_settings(environment)) as database:
        async with database.transaction() as session:
            user_id = await add_user(session)
        now = utc_now()
        made = await create_token(
            database, user_id, "chart", expires_at=now + timedelta(hours=1), by=Actor("test"), now=now
        )
    return made.token


@dataclass
class Load:
    """Requests one after another to the ready proxies, each with a connection of its own."""

    chart: Chart
    statuses: Counter[int]
    failures: list[str]

    async def run(self) -> None:
        while True:
            try:
                async with httpx.AsyncClient(timeout=REQUEST_SECONDS, trust_env=False) as client:
                    url = await asyncio.to_thread(self.chart.proxy_url)
                    self.statuses[(await client.get(f"{url}/healthz")).status_code] += 1
            except httpx.HTTPError as error:
                self.failures.append(repr(error))


@asynccontextmanager
async def under_load(chart: Chart) -> AsyncIterator[Load]:
    load = Load(chart, Counter(), [])
    running = asyncio.create_task(load.run())
    try:
        yield load
    finally:
        running.cancel()
        await asyncio.wait([running])


async def open_workspace(chart: Chart, token: str) -> tuple[str, str]:
    """Create a workspace through the API, start it, and return its id and a page of its IDE."""
    bearer = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        base_url=chart.proxy_url(), headers=bearer, timeout=REQUEST_SECONDS, trust_env=False
    ) as client:
        created = await client.post("/api/v1/workspaces", json={"name": "first", "desired_state": "RUNNING"})
        assert created.is_success, created.text
        workspace_id = created.json()["id"]

        async def runs() -> bool:
            found = (await client.get(f"/api/v1/workspaces/{workspace_id}")).json()
            assert found["phase"] != "ERROR", found
            return bool(found["phase"] == "RUNNING")

        await until(runs, "the workspace runs")
        page = await client.get("/", headers={"Host": f"{workspace_id}.localhost:8080"})
        assert page.status_code == 200, page.text
    return workspace_id, page.text


@pytest.mark.timeout(1800)
async def test_a_release_is_installed_upgraded_and_removed(
    cluster: Cluster, servers: Servers, tmp_path: Path
) -> None:
    need_docker(f"{CONTROL_PLANE_IMAGE}:latest", JOB_IMAGE)
    load_images(cluster)
    labels = json.loads(docker("inspect", "--format", "{{json .Config.Labels}}", IDE_IMAGE))
    workspaces = {
        "image": IDE_IMAGE,
        "imageLabels": {IDE_IMAGE.partition(":")[0]: labels},
        "storage": {"className": DEFAULT_CLASS},
    }
    async with fresh_stores(servers, cluster) as environment:
        with new_release(cluster, environment, tmp_path, workspaces=workspaces) as chart:
            await asyncio.to_thread(chart.install)
            assert {part: ready_pods(chart, part) for part in PARTS} == dict.fromkeys(PARTS, REPLICAS)
            password = await asyncio.to_thread(
                chart.execute, "api", "codehub", "user", "add", "admin", "--admin", "--generate"
            )
            assert len(password.split()) == 1

            workspace_id, _ = await open_workspace(chart, await token_of_new_user(environment))
            pods = chart.api.list(f"/api/v1/namespaces/{chart.workspaces}/pods")
            assert [pod["metadata"]["labels"]["codehub.io/workspace-id"] for pod in pods] == [workspace_id]

            async with under_load(chart) as load:
                await asyncio.to_thread(chart.install, "--set-string", "settings.CODEHUB_LOG_LEVEL=debug")
            assert load.failures == []
            assert set(load.statuses) == {200}

            await asyncio.to_thread(chart.helm, "uninstall", "codehub")
            assert chart.api.find(f"/api/v1/namespaces/{chart.workspaces}/pods/codehub-ws-{workspace_id}")
            policies = chart.api.list(
                f"/apis/networking.k8s.io/v1/namespaces/{chart.workspaces}/networkpolicies"
            )
            assert [policy["metadata"]["name"] for policy in policies] == ["codehub-workspaces-deny"]


def ready_pods(chart: Chart, part: str) -> int:
    statuses = [pod["status"].get("containerStatuses", ()) for pod in chart.pods(part)]
    return sum(each["ready"] for containers in statuses for each in containers)
