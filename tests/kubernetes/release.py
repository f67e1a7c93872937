"""An installed release of the chart, and users of its API."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from codehub.bootstrap import open_database
from codehub.clock import utc_now
from codehub.domain.conditions import WorkspaceId
from codehub.services.audit import Actor
from codehub.services.credentials import create_token
from codehub.settings import load_settings
from testkit.deployment import Servers, clone_database, register_namespace
from testkit.docker_engine import docker
from testkit.homes import KubernetesHomes
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.provisioner import DEFAULT_CLASS
from testkit.rows import add_user
from testkit.waiting import until
from tests.kubernetes.chart import Chart, new_release
from tests.kubernetes.conftest import IDE_IMAGE
from tests.kubernetes.reachable_servers import reachable_servers, settings_for_pods

REQUEST_SECONDS = 60
# How long the API keeps a request until the workspace has arrived.
WAIT_SECONDS = 30
WORKSPACES = "/api/v1/workspaces"


@dataclass(frozen=True)
class User:
    """A user of the API, who reaches it through the ready proxies."""

    chart: Chart
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def request(self, method: str, path: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the response; fail if it is not a success."""
        url = await asyncio.to_thread(self.chart.proxy_url)
        async with httpx.AsyncClient(
            base_url=url, headers=self.headers, timeout=REQUEST_SECONDS, trust_env=False
        ) as client:
            response = await client.request(method, path, json=form)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        document: dict[str, Any] = response.json()
        return document

    async def create(self, desired: str) -> WorkspaceId:
        """Create a workspace with the tiny IDE, and return when it is in this state."""
        form = {"name": f"load-{uuid4().hex[:8]}", "image_ref": IDE_IMAGE, "desired_state": desired}
        workspace_id = WorkspaceId((await self.request("POST", WORKSPACES, form))["id"])
        await self.wait_for(workspace_id, desired)
        return workspace_id

    async def move_to(self, workspace_id: WorkspaceId, desired: str) -> None:
        path = f"{WORKSPACES}/{workspace_id}?wait={WAIT_SECONDS}"
        await self.request("PATCH", path, {"desired_state": desired})
        await self.wait_for(workspace_id, desired)

    async def wait_for(self, workspace_id: WorkspaceId, state: str) -> None:
        """Wait until the workspace is in this state and nothing goes on; fail if it is in ERROR."""

        async def arrived() -> bool:
            seen = await self.request("GET", f"{WORKSPACES}/{workspace_id}")
            assert seen["phase"] != "ERROR", seen
            return (seen["phase"], seen["operation"]) == (state, "NONE")

        await until(arrived, f"{workspace_id} in {state}")

    async def operations(self, workspace_id: WorkspaceId) -> list[dict[str, Any]]:
        """Return the latest operations, newest first."""
        page = await self.request("GET", f"{WORKSPACES}/{workspace_id}/operations?limit=100")
        return list(page["items"])

    async def steps(self, workspace_id: WorkspaceId, operation_id: int) -> list[dict[str, Any]]:
        path = f"{WORKSPACES}/{workspace_id}/operations/{operation_id}/steps"
        return list((await self.request("GET", path))["items"])


@dataclass(frozen=True)
class Release:
    """A release whose Pods are ready, and the settings of its stores."""

    chart: Chart
    environment: Mapping[str, str]

    @property
    def homes(self) -> KubernetesHomes:
        return KubernetesHomes(self.chart.cluster.kubeconfig, self.chart.workspaces)

    async def new_user(self) -> User:
        async with open_database(load_settings(self.environment)) as database:
            async with database.transaction() as session:
                user_id = await add_user(session)
            now = utc_now()
            made = await create_token(
                database, user_id, "chart", expires_at=now + timedelta(hours=1), by=Actor("test"), now=now
            )
        return User(self.chart, made.token)


@asynccontextmanager
async def installed_release(servers: Servers, cluster: Cluster, directory: Path) -> AsyncIterator[Release]:
    """Install the chart on an empty database and an own namespace of Temporal."""
    environment = await _fresh_stores(servers)
    for_pods = settings_for_pods(cluster.host_address, environment)
    async with reachable_servers(cluster.host_address, environment):
        with new_release(cluster, for_pods, directory, **_values()) as chart:
            await asyncio.to_thread(chart.install)
            yield Release(chart, environment)


async def _fresh_stores(servers: Servers) -> dict[str, str]:
    name = f"chart_{uuid4().hex}"
    shared = servers.stack.environment
    database_url = await clone_database(shared["CODEHUB_DATABASE_URL"], "template1", name)
    own = {**shared, "CODEHUB_DATABASE_URL": database_url, "CODEHUB_TEMPORAL_NAMESPACE": name}
    await register_namespace(load_settings(own))
    return own


def _values() -> dict[str, object]:
    """Return values for code-server by default and the tiny IDE by choice."""
    labels = json.loads(docker("inspect", "--format", "{{json .Config.Labels}}", IDE_IMAGE))
    return {
        "workspaces": {
            "allowedImages": [IDE_IMAGE],
            "imageLabels": {IDE_IMAGE.partition(":")[0]: labels},
            "storage": {"className": DEFAULT_CLASS},
        },
        "settings": {"CODEHUB_LIMITS_MAX_RUNNING_PER_USER": "100"},
    }
