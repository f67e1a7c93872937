"""The program that operates a cluster: requests and answers are lines, and it repairs when its input ends."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gameday.stage.cluster import ClusterOperator, NoCluster, RequestFailed, operated_cluster

# Answers every request, writes down what it was asked, and "repairs" at the end.
PROGRAM = """
import json, sys
diary = open({diary!r}, "a", buffering=1)
print(json.dumps({{"kubeconfig": "/config", "host_address": "10.0.0.1", "storage_class": "local",
                  "nodes": ["node1", "node2"]}}), flush=True)
for line in sys.stdin:
    diary.write(line)
    print("ok" if "unknown" not in line else "error: KeyError: 'unknown'", flush=True)
diary.write("repaired\\n")
"""


def command(directory: Path) -> str:
    program = directory / "program.py"
    program.write_text(PROGRAM.format(diary=str(directory / "diary")))
    return f"{sys.executable} {program}"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterOperator]:
    async with operated_cluster(command(tmp_path)) as opened:
        yield opened


async def test_it_describes_the_cluster(cluster: ClusterOperator) -> None:
    described = cluster.description
    assert (described.kubeconfig, described.host_address) == (Path("/config"), "10.0.0.1")
    assert (described.storage_class, described.nodes) == ("local", ("node1", "node2"))


async def test_requests_are_carried_out_and_everything_is_repaired_at_the_end(tmp_path: Path) -> None:
    async with operated_cluster(command(tmp_path)) as cluster:
        await asyncio.gather(cluster.request("kill", "etcd"), cluster.request("kill", "kubelet", "node1"))
    assert (tmp_path / "diary").read_text().splitlines() == ["kill etcd", "kill kubelet node1", "repaired"]


async def test_a_refused_request_is_an_error_with_the_words_of_the_program(cluster: ClusterOperator) -> None:
    with pytest.raises(RequestFailed, match="kill unknown: error: KeyError"):
        await cluster.request("kill", "unknown")


async def test_a_cancelled_request_does_not_take_the_answer_of_the_next_one(
    cluster: ClusterOperator,
) -> None:
    cancelled = asyncio.create_task(cluster.request("kill", "unknown"))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert cancelled.cancelled()
    await cluster.request("kill", "etcd")


async def test_overlapping_faults_of_one_server_count_once_and_until_the_last_one_ends(
    cluster: ClusterOperator,
) -> None:
    with cluster.breaking("etcd"):
        with cluster.breaking("etcd"), cluster.breaking("node1"):
            assert cluster.broken == ["etcd", "node1"]
        assert cluster.broken == ["etcd"]
    assert cluster.broken == []


@pytest.mark.parametrize("program", ["true", "echo {}", "echo", "/nonexistent/program", "'"])
async def test_a_program_without_a_cluster_is_refused(program: str) -> None:
    with pytest.raises(NoCluster):
        async with operated_cluster(program):
            pass
