"""Install the Helm chart on the test cluster, with the servers of the tests outside of it."""

import asyncio
import base64
import random
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import yaml  # type: ignore[import-untyped]

from testkit.docker_engine import docker
from testkit.kubernetes import binaries
from testkit.kubernetes.api import Api
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.deadline import wait_until
from tests.deploy.helm import CHART, HELM

CONTROL_PLANE_IMAGE = "codehub-control-plane"
STORAGE_JOB_IMAGE = "codehub-storage-job"
TAG = "chart-test"
RELEASE = "codehub"
INSTALL_SECONDS = 600
TLS_FILES = {"ca.crt": "CA", "tls.crt": "CERT", "tls.key": "KEY"}


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
        "publicUrl": "http://localhost:8080",
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
        "proxy": {"autoscaling": {"enabled": False}, "drainSeconds": 20},
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
    temporal = {
        name: Path(environment[f"CODEHUB_TEMPORAL_TLS_{file}_FILE"]).read_text()
        for name, file in TLS_FILES.items()
    }
    for name, content in (("codehub", codehub), ("temporal", temporal)):
        data = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
        api.create(f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}, "data": data})


def load_images(cluster: Cluster) -> None:
    """Copy the images of CodeHub that the tests need to the nodes, under a tag that the chart accepts."""
    names = (CONTROL_PLANE_IMAGE, STORAGE_JOB_IMAGE)
    tagged = [f"{name}:{TAG}" for name in names]
    for name, tag in zip(names, tagged, strict=True):
        docker("tag", f"{name}:latest", tag)
    cluster.load_images(*tagged)
    docker("rmi", *tagged)


@asynccontextmanager
async def reachable_servers(
    cluster: Cluster, environment: Mapping[str, str]
) -> AsyncIterator[dict[str, str]]:
    """Forward the servers from an address that Pods reach; yield the environment with that address."""
    host = cluster.host_address
    changed = dict(environment)
    async with AsyncExitStack() as stack:
        for name in ("DATABASE_URL", "REDIS_URL", "S3_ENDPOINT_URL", "TEMPORAL_ADDRESS"):
            url = environment[f"CODEHUB_{name}"]
            port = urlsplit(url if "://" in url else f"//{url}").port or 0
            await stack.enter_async_context(_forward(host, port))
            changed[f"CODEHUB_{name}"] = _at(host, url)
        yield changed


def _at(host: str, url: str) -> str:
    if "://" not in url:
        return f"{host}:{url.rpartition(':')[2]}"
    parts = urlsplit(url)
    credentials, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{credentials}{at}{host}:{parts.port}"))


@asynccontextmanager
async def _forward(host: str, port: int) -> AsyncIterator[None]:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))

    server = await asyncio.start_server(forward, host, port)
    try:
        yield
    finally:
        server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


def _run(*command: str) -> str:
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, f"{' '.join(command)}: {result.stderr}"
    return result.stdout
