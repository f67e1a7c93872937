"""Run workers that crash as Pods of the test cluster."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from testkit.crash_points import CrashingWorker, CrashPoint
from testkit.docker_engine import build, need_docker
from testkit.kubernetes.api import Api
from testkit.kubernetes.cluster import Cluster
from tests.contracts.kubernetes_harness import Namespace
from tests.kubernetes.chart import CONTROL_PLANE_IMAGE, create_secret
from tests.kubernetes.reachable_servers import TLS_FILES, settings_for_pods, temporal_files

IMAGE = "codehub-test-crashing-worker:latest"
FILES = "/etc/codehub"
KUBECONFIG = "kubeconfig"
LOG_LINES = 50


def load_image(cluster: Cluster) -> None:
    """Build the image of the control plane with crash points, and load it into the nodes."""
    need_docker(f"{CONTROL_PLANE_IMAGE}:latest")
    build(IMAGE, "crashing-worker.Dockerfile")
    cluster.load_images(IMAGE)


@dataclass(frozen=True)
class WorkerPod:
    """A crashing worker that Kubernetes does not start again."""

    api: Api
    path: str

    async def exit_code(self) -> int | None:
        statuses = self.api.get(self.path)["status"].get("containerStatuses", ())
        codes = [
            each["state"]["terminated"]["exitCode"] for each in statuses if "terminated" in each["state"]
        ]
        return int(codes[0]) if codes else None


@asynccontextmanager
async def crashing_pod(
    namespace: Namespace, point: CrashPoint, environment: Mapping[str, str]
) -> AsyncIterator[CrashingWorker]:
    """Run a worker with these settings that crashes at the point; remove it at the end."""
    name = f"worker-{uuid4()}"
    host = namespace.cluster.host_address
    files = {**temporal_files(environment), KUBECONFIG: namespace.cluster.kubeconfig.read_text()}
    create_secret(namespace.api, namespace.name, name, _settings(settings_for_pods(host, environment)))
    create_secret(namespace.api, namespace.name, f"{name}-files", files)
    # The worker is another user there.
    point.crashed_file.parent.chmod(0o777)
    namespace.api.create(f"{namespace.path}/pods", _pod(name, point))
    pod = WorkerPod(namespace.api, f"{namespace.path}/pods/{name}")
    try:
        yield pod
    except Exception as error:
        # Without a container there is no log.
        with suppress(httpx.HTTPError):
            error.add_note(namespace.api.text(f"{pod.path}/log?tailLines={LOG_LINES}"))
        raise
    finally:
        namespace.api.delete(pod.path, gracePeriodSeconds=0)


def _settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of CodeHub, without the rest of the environment and with the paths of a Pod."""
    own = {name: value for name, value in environment.items() if name.startswith("CODEHUB_")}
    certificates = {
        f"CODEHUB_TEMPORAL_TLS_{file}_FILE": f"{FILES}/{name}" for name, file in TLS_FILES.items()
    }
    paths = {
        "HOME": "/tmp",  # noqa: S108 (of a container)
        "CODEHUB_DATA_DIR": "/tmp/codehub",  # noqa: S108
        "CODEHUB_KUBERNETES_KUBECONFIG": f"{FILES}/{KUBECONFIG}",
    }
    return {**own, **certificates, **paths}


def _pod(name: str, point: CrashPoint) -> dict[str, Any]:
    crashes = str(point.crashed_file.parent)
    container = {
        "name": "worker",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": _command(point),
        "envFrom": [{"secretRef": {"name": name}}],
        # The directory of the host has the same path inside, so the crash point is the same.
        "volumeMounts": [
            {"name": "files", "mountPath": FILES},
            {"name": "crashes", "mountPath": crashes},
        ],
    }
    spec = {
        "restartPolicy": "Never",
        # The kernel ignores a SIGKILL that the first process of a PID namespace sends to itself.
        "shareProcessNamespace": True,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [
            {"name": "files", "secret": {"secretName": f"{name}-files"}},
            {"name": "crashes", "hostPath": {"path": crashes, "type": "Directory"}},
        ],
    }
    return {"metadata": {"name": name}, "spec": spec}


def _command(point: CrashPoint) -> list[str]:
    return ["python", "-m", "testkit.crash_points", str(point), point.workspace_id, str(point.crashed_file)]
