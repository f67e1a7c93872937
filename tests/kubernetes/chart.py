"""Install the Helm chart on the test cluster, with the servers of the tests outside of it."""

import base64
import random
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml  # type: ignore[import-untyped]

from testkit.docker_engine import docker, need_docker
from testkit.kubernetes import binaries
from testkit.kubernetes.api import Api
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.deadline import wait_until
from tests.deploy.helm import CHART, HELM
from tests.kubernetes.reachable_servers import temporal_files

CONTROL_PLANE_IMAGE = "codehub-control-plane"
IMAGES = (CONTROL_PLANE_IMAGE, "codehub-storage-job", "codehub-workspace")
TAG = "chart-test"
RELEASE = "codehub"
INSTALL_SECONDS = 600
PUBLIC_URL = "http://localhost:8080"
# Longer than an upgrade takes: an open WebSocket must outlive it.
DRAIN_SECONDS = 300


@dataclass(frozen=True)
class Chart:
    """One release in a namespace of its own."""

    cluster: Cluster
    api: Api
    namespace: str
    values: Path

    @property
    def workspaces(self) -> str:
        return f"{self.namespace}-workspaces"

    def proxy_url(self) -> str:
        """Return the address of a proxy that is ready now, chosen as an ingress controller would."""
        endpoints = self.api.get(f"/api/v1/namespaces/{self.namespace}/endpoints/{RELEASE}-proxy")
        ready = [each["ip"] for subset in endpoints["subsets"] for each in subset.get("addresses", ())]
        return f"http://{random.choice(ready)}:8080"  # noqa: S311 (no secret)

    @property
    def arguments(self) -> tuple[str, ...]:
        return (str(CHART), "--values", str(self.values))

    def install(self, *arguments: str) -> str:
        """Install or upgrade, and return when everything is ready."""
        waiting = ("--wait", f"--timeout={INSTALL_SECONDS}s")
        return self.helm("upgrade", "--install", RELEASE, *self.arguments, *waiting, *arguments)

    def helm(self, *arguments: str) -> str:
        where = ("--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.namespace)
        return _run(str(HELM), *arguments, *where)

    def execute(self, part: str, *command: str) -> str:
        """Run a command in a container of a part."""
        where = ("--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.namespace)
        return _run(str(binaries.kubectl()), *where, "exec", f"deploy/{RELEASE}-{part}", "--", *command)

    def pods(self, part: str) -> list[dict[str, Any]]:
        selector = f"app.kubernetes.io/component={part}"
        return self.api.list(f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={selector}")


@contextmanager
def new_release(
    cluster: Cluster, environment: Mapping[str, str], directory: Path, **values: object
) -> Iterator[Chart]:
    """Prepare a namespace with the Secrets and values of a release; remove everything at the end."""
    namespace = f"chart-{uuid4().hex[:8]}"
    file = directory / "values.yaml"
    file.write_text(yaml.safe_dump({**_values(cluster, environment), **values}))
    with cluster.api() as api:
        chart = Chart(cluster, api, namespace, file)
        api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        try:
            _create_secrets(api, namespace, environment)
            yield chart
        finally:
            _remove(chart)


def _remove(chart: Chart) -> None:
    names = (chart.namespace, chart.workspaces)
    subprocess.run(
        (str(HELM), "uninstall", RELEASE, "-n", chart.namespace, "--kubeconfig", chart.cluster.kubeconfig),
        check=False,
        capture_output=True,
    )
    for name in names:
        chart.api.delete(f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds=0)
        chart.api.delete(f"/api/v1/namespaces/{name}")
    for name in names:
        wait_until(lambda name=name: chart.api.find(f"/api/v1/namespaces/{name}") is None, f"{name} is gone")  # type: ignore[misc]


def _values(cluster: Cluster, environment: Mapping[str, str]) -> dict[str, object]:
    """Return values for a cluster without DNS: the Services have fixed addresses."""
    last = int(cluster.network.services[-1])
    return {
        "publicUrl": PUBLIC_URL,
        "images": {"tag": TAG},
        "s3": {"endpointUrl": environment["CODEHUB_S3_ENDPOINT_URL"]},
        "temporal": {
            "address": environment["CODEHUB_TEMPORAL_ADDRESS"],
            "namespace": environment["CODEHUB_TEMPORAL_NAMESPACE"],
            "tls": {
                "enabled": True,
                "secretName": "temporal",
                "clientCertificate": True,
                "serverName": environment["CODEHUB_TEMPORAL_TLS_SERVER_NAME"],
            },
        },
        "network": {"pods": [str(cluster.network.subnet)]},
        "api": {"clusterIP": str(IPv4Address(last - 2)), "autoscaling": {"enabled": False}},
        "egress": {"clusterIP": str(IPv4Address(last - 3)), "drainSeconds": 1},
        "proxy": {"autoscaling": {"enabled": False}, "drainSeconds": DRAIN_SECONDS},
        "endpointSeconds": 5,
    }


def _create_secrets(api: Api, namespace: str, environment: Mapping[str, str]) -> None:
    codehub = {
        "database-url": environment["CODEHUB_DATABASE_URL"],
        "redis-url": environment["CODEHUB_REDIS_URL"],
        "s3-access-key": environment["CODEHUB_S3_ACCESS_KEY"],
        "s3-secret-key": environment["CODEHUB_S3_SECRET_KEY"],
        "egress-key": environment["CODEHUB_EGRESS_KEY"],
    }
    create_secret(api, namespace, "codehub", codehub)
    create_secret(api, namespace, "temporal", temporal_files(environment))


def create_secret(api: Api, namespace: str, name: str, content: Mapping[str, str]) -> None:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
    api.create(f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}, "data": data})


def load_images(cluster: Cluster) -> None:
    """Copy the images of CodeHub to the nodes, under a tag that the chart accepts."""
    need_docker(*(f"{name}:latest" for name in IMAGES))
    tagged = [f"{name}:{TAG}" for name in IMAGES]
    for name, tag in zip(IMAGES, tagged, strict=True):
        docker("tag", f"{name}:latest", tag)
    cluster.load_images(*tagged)
    docker("rmi", *tagged)


def _run(*command: str) -> str:
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, f"{' '.join(command)}: {result.stderr}"
    return result.stdout
