"""The game day on a cluster: a stage, its faults, and a short game."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from gameday.faults.catalog import weighted_faults
from gameday.options import Options
from gameday.run import run_gameday
from gameday.stage.kubernetes import KubernetesBackend
from gameday.stage.stage import K8S, Stage, open_stage
from testkit.kubernetes.api import Api
from testkit.kubernetes.cluster import Cluster
from testkit.waiting import until
from tests.gameday.players import new_workspace

MINUTES = 0.7
SEED = "kubernetes"


def operate(cluster: Cluster) -> str:
    return f"{sys.executable} -m testkit.kubernetes --directory {cluster.directory}"


@pytest.fixture(scope="module")
async def stage(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path_factory.mktemp("stage"), K8S, users=1, cluster=operate(cluster)) as opened:
        yield opened


def backend_of(stage: Stage) -> KubernetesBackend:
    assert isinstance(stage.backend, KubernetesBackend)
    return stage.backend


async def break_with(stage: Stage, kind: str) -> str:
    [fault] = [each for _, each in weighted_faults(stage) if each.kind == kind]
    return await fault.run(Random(1))  # noqa: S311 (no secret)


@pytest.mark.timeout(300)
async def test_it_sees_pods_and_homes_itself_and_a_killed_ide_restarts(stage: Stage) -> None:
    async with new_workspace(stage) as player:
        await player.reach("RUNNING")
        [instance] = await stage.instances(player.workspace_id)
        assert player.workspace_id in await stage.volumes()
        assert (await stage.home(player.workspace_id)).is_dir()
        for kind in ("kill-ide", "remove-ide", "evict-ide"):
            assert instance in await break_with(stage, kind)

            async def is_replaced(before: str = instance) -> bool:
                return await stage.instances(player.workspace_id) not in ([], [before])

            await until(is_replaced, f"another Pod runs after {kind}")
            await player.reach("RUNNING")
            [instance] = await stage.instances(player.workspace_id)


@pytest.mark.timeout(300)
async def test_a_killed_server_and_a_node_without_power_come_back(stage: Stage) -> None:
    for kind in ("kill-etcd", "kill-kubelet", "freeze-kube-apiserver", "fail-node"):
        await break_with(stage, kind)
        await asyncio.wait_for(backend_of(stage).wait_ready(), 120)
    assert stage.unavailable() == []


@pytest.mark.timeout(900)
async def test_all_invariants_hold_in_a_short_game(cluster: Cluster, api: Api, tmp_path: Path) -> None:
    options = Options(MINUTES, SEED, K8S, users=2, cluster=operate(cluster))
    result = await run_gameday(options, tmp_path, print, lambda _: None, asyncio.Event())
    assert result.violations == ()
    assert result.complete
    assert len(result.faults) > 5
    namespaces = [each["metadata"]["name"] for each in api.list("/api/v1/namespaces")]
    assert not [each for each in namespaces if each.startswith("gameday-")]
