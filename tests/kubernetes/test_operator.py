"""The operator of a test cluster breaks what it is told, restarts what ends, and repairs everything."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from testkit.kubernetes.binaries import REPOSITORY
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.deadline import wait_until


@pytest.fixture
def operator(cluster: Cluster) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "testkit.kubernetes", "--directory", str(cluster.directory), "operate"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
    wait_until(cluster.is_ready, "the cluster is ready")


def read(operator: subprocess.Popen[str]) -> str:
    assert operator.stdout is not None
    return operator.stdout.readline().strip()


def ask(operator: subprocess.Popen[str], request: str) -> str:
    assert operator.stdin is not None
    operator.stdin.write(f"{request}\n")
    operator.stdin.flush()
    return read(operator)


def end(operator: subprocess.Popen[str]) -> None:
    assert operator.stdin is not None
    operator.stdin.close()
    assert operator.wait() == 0


def test_a_killed_server_is_restarted(cluster: Cluster, operator: subprocess.Popen[str]) -> None:
    assert json.loads(read(operator))["nodes"] == list(cluster.nodes)
    [before] = cluster.control_plane.processes("kube-scheduler")
    assert ask(operator, "kill kube-scheduler") == "ok"

    def is_restarted() -> bool:
        return [each.pid for each in cluster.control_plane.processes("kube-scheduler")] not in (
            [],
            [before.pid],
        )

    wait_until(is_restarted, "the scheduler is restarted")
    assert ask(operator, "kill nothing nowhere").startswith("error: KeyError")
    end(operator)


def test_everything_is_repaired_when_the_input_ends(
    cluster: Cluster, operator: subprocess.Popen[str]
) -> None:
    read(operator)
    assert ask(operator, "freeze kube-apiserver") == "ok"
    [server] = cluster.control_plane.processes("kube-apiserver")
    assert server.status() == "stopped"
    assert ask(operator, "stop-node node2") == "ok"
    assert not cluster.nodes["node2"].is_on
    end(operator)
    assert server.status() != "stopped"
    assert cluster.nodes["node2"].is_on
