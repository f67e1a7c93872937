"""What all contestants share: a new test cluster with the image; everything ends with it."""

import base64
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.instances.contestants import BARE, HUB, KUBECTL, OURS
from benchmarks.kubernetes.calls import CallLog
from benchmarks.kubernetes.pod_times import PodTimes
from codehub.adapters.kubernetes.client import Kubernetes, open_kubernetes
from codehub.adapters.kubernetes.options import KubernetesOptions
from codehub.providers import kubernetes_options_of
from codehub.settings import load_settings
from testkit.docker_engine import build
from testkit.fakes import IMAGE
from testkit.kubernetes.api import Api
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.deadline import wait_until
from testkit.kubernetes.settings import backend_settings

IMAGES = {"tiny IDE": IMAGE}
NAMESPACE = "default"
NODES = 2
# The names of their accounts; `observer` measures.
ACCOUNTS = {BARE: "bare", KUBECTL: "kubectl", OURS: "codehub", HUB: "jupyterhub"}
OBSERVER = "observer"
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class Testbed:
    """A running cluster, where each contestant has an account of its own."""

    cluster: Cluster
    bare: Kubernetes
    pods: PodTimes

    @property
    def calls(self) -> CallLog:
        return CallLog(self.cluster.audit_log, NAMESPACE)

    def kubeconfig(self, contestant: str) -> Path:
        return _kubeconfig(self.cluster, ACCOUNTS[contestant])

    @cached_property
    def environment(self) -> dict[str, str]:
        """Return the settings of a CodeHub on this cluster."""
        return backend_settings(self.kubeconfig(OURS), NAMESPACE)

    def options(self, project: str) -> KubernetesOptions:
        """Derive the options from settings, so that all Pods are made like CodeHub's."""
        environment = {**self.environment, "CODEHUB_KUBERNETES_PROJECT": project}
        return kubernetes_options_of(load_settings(environment))


@asynccontextmanager
async def open_testbed() -> AsyncIterator[Testbed]:
    build(IMAGE, "tiny-ide.Dockerfile")
    with tempfile.TemporaryDirectory(prefix="codehub-benchmark-") as directory:
        cluster = Cluster(Path(directory, "cluster"))
        try:
            cluster.start(NODES, audit_policy=AUDIT_POLICY)
            cluster.load_images(f"{IMAGE}:latest")
            _create_accounts(cluster)
            async with (
                open_kubernetes(_kubeconfig(cluster, ACCOUNTS[BARE]), NAMESPACE) as bare,
                open_kubernetes(_kubeconfig(cluster, OBSERVER), NAMESPACE) as observer,
                PodTimes(observer).observing() as pods,
            ):
                yield Testbed(cluster, bare, pods)
        finally:
            cluster.stop()


def _kubeconfig(cluster: Cluster, account: str) -> Path:
    return cluster.credentials.kubeconfig(account)


def _create_accounts(cluster: Cluster) -> None:
    """Create accounts with all rights, so that the audit log tells the contestants apart."""
    accounts = [*ACCOUNTS.values(), OBSERVER]
    with cluster.api() as api:
        for name in accounts:
            metadata = {"name": name}
            api.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": metadata})
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
            subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
            binding = {"metadata": metadata, "roleRef": role, "subjects": [subject]}
            api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        # Without the token of the default account the API server refuses all Pods.
        tokens = {name: _wait_for_token(api, name) for name in (*accounts, "default")}
    configuration = json.loads(cluster.kubeconfig.read_text())
    for name in accounts:
        configuration["users"][0]["user"] = {"token": tokens[name]}
        _kubeconfig(cluster, name).write_text(json.dumps(configuration))


def _wait_for_token(api: Api, account: str) -> str:
    """Return the token that the cluster creates for a new account."""
    secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"

    def tokens() -> list[str]:
        owner = "kubernetes.io/service-account.name"
        mine = (each for each in api.list(secrets) if each["metadata"]["annotations"].get(owner) == account)
        return [each["data"]["token"] for each in mine if "token" in each.get("data", {})]

    wait_until(lambda: bool(tokens()), f"the account {account} has a token")
    return base64.b64decode(tokens()[0]).decode()
