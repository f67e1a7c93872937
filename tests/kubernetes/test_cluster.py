"""The test cluster itself works: nodes, volumes, the network, and the healing of its servers."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from testkit.kubernetes import control_plane, node
from testkit.kubernetes.api import Api, is_true
from testkit.kubernetes.binaries import REPOSITORY
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.deadline import wait_until
from testkit.kubernetes.machine import run
from testkit.kubernetes.provisioner import DEFAULT_CLASS, IMMEDIATE_CLASS
from tests.kubernetes.conftest import IDE_IMAGE, need_cluster

USER = 1000
PORT = 8080
HOME = "/home/coder"
# Each with the node that it runs on, or None for the control plane.
SERVERS = [
    (control_plane.ETCD, None),
    (control_plane.API_SERVER, None),
    (control_plane.CONTROLLER_MANAGER, None),
    (control_plane.SCHEDULER, None),
    (control_plane.PROVISIONER, None),
    (node.CONTAINERD, "node1"),
    (node.KUBELET, "node1"),
]
START_ONE_NODE = """
import signal, sys
from pathlib import Path
from testkit.kubernetes.cluster import Cluster
Cluster(Path(sys.argv[1])).start(nodes=1)
print("ready", flush=True)
signal.pause()
"""


def claim(storage_class: str = DEFAULT_CLASS) -> dict[str, Any]:
    return {
        "metadata": {"name": "home"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def ide_pod(on: str | None = None) -> dict[str, Any]:
    container = {
        "name": "ide",
        "image": IDE_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "/tiny_ide.py", str(PORT), "/"],
        "readinessProbe": {"httpGet": {"port": PORT, "path": "/health"}, "periodSeconds": 1},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "home", "mountPath": HOME}],
    }
    return {
        "metadata": {"name": "ide"},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": on} if on else {},
            "securityContext": {"runAsUser": USER, "runAsGroup": USER, "fsGroup": USER, "runAsNonRoot": True},
            "containers": [container],
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}],
        },
    }


def start_ide(api: Api, namespace: str, on: str | None = None) -> dict[str, Any]:
    """Start an IDE with a home, and return its Pod when it is ready."""
    path = f"/api/v1/namespaces/{namespace}"
    api.create(f"{path}/persistentvolumeclaims", claim())
    api.create(f"{path}/pods", ide_pod(on))
    wait_until(lambda: is_true(api.get(f"{path}/pods/ide"), "Ready"), "the Pod is ready")
    return api.get(f"{path}/pods/ide")


def ask(pod: dict[str, Any], path: str) -> str:
    return httpx.get(f"http://{pod['status']['podIP']}:{PORT}/{path}", trust_env=False).text


def home_of(api: Api, namespace: str) -> dict[str, Any]:
    return api.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/home")


def directory_of(api: Api, namespace: str) -> Path:
    """Return where the home is on this machine."""
    volume = api.get(f"/api/v1/persistentvolumes/{home_of(api, namespace)['spec']['volumeName']}")
    return Path(volume["spec"]["local"]["path"])


def test_both_nodes_are_ready(cluster: Cluster, api: Api) -> None:
    nodes = {each["metadata"]["name"]: is_true(each, "Ready") for each in api.list("/api/v1/nodes")}
    assert nodes == {"node1": True, "node2": True}
    assert list(cluster.nodes) == ["node1", "node2"]


def test_a_pod_without_root_writes_to_its_claim_and_is_reachable_from_the_host(
    api: Api, namespace: str
) -> None:
    pod = start_ide(api, namespace)
    words = "\0".join(["touch", f"{HOME}/file"])
    ask(pod, f"run/{words.encode().hex()}")
    file = (directory_of(api, namespace) / "file").stat()
    assert (file.st_uid, file.st_gid) == (USER, USER)


def test_pods_reach_servers_on_the_host_and_the_api_server(
    cluster: Cluster, api: Api, namespace: str
) -> None:
    pod = start_ide(api, namespace)
    service = api.get("/api/v1/namespaces/default/services/kubernetes")["spec"]["clusterIP"]
    with subprocess.Popen(
        [sys.executable, "-m", "http.server", "--bind", cluster.host_address, "0"], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        port = server.stdout.readline().split()[5].decode()
        program = (
            "import socket, sys; [socket.create_connection(a.split('/')) for a in sys.argv[1:]]; print('ok')"
        )
        addresses = [f"{service}/443", f"{cluster.host_address}/{port}"]
        words = "\0".join(["python3", "-c", program, *addresses])
        assert ask(pod, f"run/{words.encode().hex()}") == "ok\n"
        server.kill()


def test_a_home_goes_with_its_claim(api: Api, namespace: str) -> None:
    start_ide(api, namespace)
    directory = directory_of(api, namespace)
    path = f"/api/v1/namespaces/{namespace}"
    api.delete(f"{path}/pods/ide", gracePeriodSeconds=0)
    api.delete(f"{path}/persistentvolumeclaims/home")
    wait_until(lambda: not directory.exists(), "the directory is gone")


def test_a_claim_of_the_immediate_class_is_bound_without_a_pod_and_grows(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    api.create(path, claim(IMMEDIATE_CLASS))
    wait_until(lambda: home_of(api, namespace)["status"]["phase"] == "Bound", "the claim is bound")
    larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    api.patch(f"{path}/home", larger)
    wait_until(
        lambda: home_of(api, namespace)["status"]["capacity"]["storage"] == "2Gi", "the claim has grown"
    )


@pytest.mark.parametrize(("kind", "body"), [("persistentvolumeclaims", claim()), ("pods", ide_pod())])
def test_one_of_several_creates_at_once_succeeds(
    api: Api, namespace: str, kind: str, body: dict[str, Any]
) -> None:
    with ThreadPoolExecutor(8) as threads:
        path = f"/api/v1/namespaces/{namespace}/{kind}"
        responses = list(threads.map(lambda _: api.post(path, body), range(8)))
    assert Counter(response.status_code for response in responses) == {201: 1, 409: 7}


@pytest.mark.parametrize(("server", "on"), SERVERS, ids=[server for server, _ in SERVERS])
def test_pods_start_after_a_server_was_killed_and_started(
    cluster: Cluster, api: Api, namespace: str, server: str, on: str | None
) -> None:
    cluster.restart(server, on)
    wait_until(cluster.is_ready, "the cluster is ready")
    ask(start_ide(api, namespace, on), "health")


def test_a_lost_node_is_noticed_and_comes_back_without_its_pods(
    cluster: Cluster, api: Api, namespace: str
) -> None:
    pod = start_ide(api, namespace, on="node2")
    cluster.stop_node("node2")
    try:
        wait_until(lambda: not is_true(api.get("/api/v1/nodes/node2"), "Ready"), "the node is lost")
        with pytest.raises(httpx.ConnectError):
            ask(pod, "health")
    finally:
        cluster.start_node("node2")
    path = f"/api/v1/namespaces/{namespace}/pods/ide"
    wait_until(lambda: api.get(path)["status"]["phase"] == "Failed", "the Pod has failed")


def running(directory: Path) -> list[str]:
    """Return processes and mounts of a cluster."""
    processes = [each for each in Path("/proc").glob("[0-9]*/cmdline") if str(directory) in _text(each)]
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(directory) in line]
    return [*map(str, processes), *mounts]


def traces(cluster: Cluster) -> list[str]:
    """Return what else a cluster may leave on this machine."""
    links = [line for line in run("ip", "-brief", "link").splitlines() if cluster.network.interface in line]
    groups = Path("/sys/fs/cgroup").glob(f"*/{cluster.network.interface}-*")
    return [*links, *map(str, groups), *map(str, cluster.directory.glob("*"))]


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def test_nothing_runs_after_a_run_was_killed_and_the_rest_can_be_removed(tmp_path: Path) -> None:
    need_cluster()
    directory = tmp_path / "cluster"
    command = [sys.executable, "-c", START_ONE_NODE, str(directory)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"ready\n"
        assert running(directory) != []
        starter.kill()
    wait_until(lambda: running(directory) == [], "nothing runs")
    cluster = Cluster(directory)
    assert traces(cluster) != []
    cluster.stop()
    assert traces(cluster) == []
