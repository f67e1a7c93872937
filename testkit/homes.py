"""Homes of workspaces as directories on this machine, on any backend."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from codehub.adapters.kubernetes.options import USER_ID
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import volume_name
from codehub.providers import local_root_of
from codehub.settings import Settings
from testkit.docker_engine import volume_path
from testkit.kubernetes.api import Api
from testkit.kubernetes.deadline import wait_until
from testkit.kubernetes.provisioner import SELECTED_NODE, VOLUMES_PATH
from testkit.trees import (
    Description,
    describe_tree,
    make_home_of_user,
    make_rich_home,
    without_owners,
    without_root,
)

# How the kubelet leaves the root of a volume with a group; then it does not change the files below.
ROOT_MODE = 0o2775
NO_VOLUME = Path("/nonexistent/volume")


class Homes(Protocol):
    """The homes of one deployment."""

    def path(self, workspace_id: WorkspaceId) -> Path:
        """Return the directory of the home; it exists only if the volume does."""
        ...

    def fill(self, workspace_id: WorkspaceId) -> None:
        """Make every kind of entry that a home can have, in an empty home."""
        ...

    def describe(self, workspace_id: WorkspaceId) -> Description:
        """Return all attributes that must survive on this backend."""
        ...


def homes_of(settings: Settings) -> Homes:
    backend = settings.workspaces.instance_backend
    if backend == "local":
        return LocalHomes(local_root_of(settings))
    if backend == "local-docker":
        return DockerHomes()
    kubernetes = settings.kubernetes
    assert kubernetes.kubeconfig is not None
    return KubernetesHomes(kubernetes.kubeconfig, kubernetes.namespace)


@dataclass(frozen=True)
class LocalHomes:
    root: Path

    def path(self, workspace_id: WorkspaceId) -> Path:
        return self.root / "volumes" / volume_name(workspace_id)

    def fill(self, workspace_id: WorkspaceId) -> None:
        make_rich_home(self.path(workspace_id))

    def describe(self, workspace_id: WorkspaceId) -> Description:
        """Describe it without the owners: a local home belongs to the workspace's user."""
        return without_owners(describe_tree(self.path(workspace_id)))


class DockerHomes:
    def path(self, workspace_id: WorkspaceId) -> Path:
        return volume_path(workspace_id)

    def fill(self, workspace_id: WorkspaceId) -> None:
        make_rich_home(self.path(workspace_id))

    def describe(self, workspace_id: WorkspaceId) -> Description:
        return describe_tree(self.path(workspace_id))


@dataclass(frozen=True)
class KubernetesHomes:
    """The volumes of the test cluster, whose nodes are on this machine."""

    kubeconfig: Path
    namespace: str

    def path(self, workspace_id: WorkspaceId) -> Path:
        with Api(self.kubeconfig) as api:
            claim = api.find(self._claim_path(workspace_id))
            volume = api.find(_volume_path(claim)) if claim else None
        return Path(volume["spec"]["local"]["path"]) if volume else NO_VOLUME

    def fill(self, workspace_id: WorkspaceId) -> None:
        """Fill it as the user's own programs could, because jobs run as the user too."""
        self._provision(workspace_id)
        root = self.path(workspace_id)
        make_home_of_user(root, USER_ID)
        os.chown(root, 0, USER_ID)
        root.chmod(ROOT_MODE)

    def describe(self, workspace_id: WorkspaceId) -> Description:
        """Describe it without the root, which belongs to the volume."""
        return without_root(describe_tree(self.path(workspace_id)))

    def _provision(self, workspace_id: WorkspaceId) -> None:
        """Choose a node like the scheduler, because the volume of a claim waits for its first Pod."""
        with Api(self.kubeconfig) as api:
            claim = api.get(self._claim_path(workspace_id))
            if SELECTED_NODE not in claim["metadata"].get("annotations", {}):
                node = api.list("/api/v1/nodes")[0]["metadata"]["name"]
                chosen = {"metadata": {"annotations": {SELECTED_NODE: node}}}
                api.patch(self._claim_path(workspace_id), chosen)
            wait_until(lambda: api.find(_volume_path(claim)) is not None, "the claim has a volume")

    def _claim_path(self, workspace_id: WorkspaceId) -> str:
        return f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims/{volume_name(workspace_id)}"


def _volume_path(claim: dict[str, Any]) -> str:
    return f"{VOLUMES_PATH}/pvc-{claim['metadata']['uid']}"
