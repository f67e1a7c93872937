"""The life of a workspace on a cluster: it runs, is archived, and comes back on another node."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from codehub.domain.states import DesiredState, Phase
from codehub.providers import open_providers
from testkit.deployment import Deployment, Servers
from testkit.kubernetes.provisioner import SELECTED_NODE
from tests.contracts.instance_harness import fetch
from tests.contracts.kubernetes_harness import Namespace
from tests.kubernetes.deployment import (
    cordoned,
    objects_of,
    open_kubernetes_deployment,
    wait_until_nothing_is_left,
)
from tests.kubernetes.fixtures import shared_namespace

__all__ = ["shared_namespace"]


@pytest.fixture
async def deployment(
    servers: Servers, shared_namespace: Namespace, tmp_path: Path
) -> AsyncIterator[Deployment]:
    async with open_kubernetes_deployment(servers, shared_namespace, tmp_path) as deployment:
        yield deployment


async def create_full(deployment: Deployment) -> WorkspaceId:
    """Create a stopped workspace with a home that has every kind of entry."""
    workspace_id = await deployment.create(DesiredState.STANDBY)
    await deployment.wake(workspace_id)
    await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
    deployment.fill_home(workspace_id)
    return workspace_id


async def list_home_in_ide(deployment: Deployment, workspace_id: WorkspaceId) -> list[str]:
    """Return the names that the IDE sees in its home, asked as the proxy would."""
    async with open_providers(deployment.settings) as providers:
        upstream = await providers.instances.find_upstream(workspace_id)
    names = json.loads(await fetch(upstream, "/list/home/coder"))
    return [str(name) for name in names]


def node_of_pod(namespace: Namespace, workspace_id: WorkspaceId) -> str:
    pod = namespace.api.get(f"{namespace.path}/pods/{container_name(workspace_id)}")
    return str(pod["spec"]["nodeName"])


def node_of_home(namespace: Namespace, workspace_id: WorkspaceId) -> str:
    claim = namespace.api.get(f"{namespace.path}/persistentvolumeclaims/{volume_name(workspace_id)}")
    return str(claim["metadata"]["annotations"][SELECTED_NODE])


@pytest.mark.timeout(600)
async def test_a_workspace_runs_is_archived_and_comes_back_on_another_node(
    deployment: Deployment, shared_namespace: Namespace
) -> None:
    api = shared_namespace.api
    async with deployment.worker():
        workspace_id = await create_full(deployment)
        before = deployment.describe_home(workspace_id)
        pod = f"pods/{container_name(workspace_id)}"
        claim = f"persistentvolumeclaims/{volume_name(workspace_id)}"

        await deployment.move_to(workspace_id, DesiredState.RUNNING)
        assert "original" in await list_home_in_ide(deployment, workspace_id)
        first_node = node_of_pod(shared_namespace, workspace_id)
        assert objects_of(deployment, api) == [pod, claim]

        await deployment.move_to(workspace_id, DesiredState.STANDBY)
        assert objects_of(deployment, api) == [claim]

        await deployment.move_to(workspace_id, DesiredState.ARCHIVED)
        await wait_until_nothing_is_left(deployment, api)

        with cordoned(api, first_node):
            await deployment.move_to(workspace_id, DesiredState.STANDBY)
        assert node_of_home(shared_namespace, workspace_id) != first_node
        assert deployment.describe_home(workspace_id) == before

        await deployment.move_to(workspace_id, DesiredState.RUNNING)
        assert "original" in await list_home_in_ide(deployment, workspace_id)
        assert node_of_pod(shared_namespace, workspace_id) != first_node
        assert deployment.describe_home(workspace_id) == before

        await deployment.delete(workspace_id, purge=True)
        await deployment.wake(workspace_id)
        await deployment.wait_for_phase(workspace_id, Phase.DELETED)
        await wait_until_nothing_is_left(deployment, api)
