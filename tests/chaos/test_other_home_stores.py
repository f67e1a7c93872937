"""A process without the right home store must neither judge nor change workspaces."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codehub.adapters.local.root import SENTINEL, LocalRoot
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.providers import local_root_of
from testkit.deployment import Deployment, Servers, open_deployment
from tests.chaos.home_stores import look_again, refused

SWEEPS = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "1"}


@pytest.fixture
async def deployment(servers: Servers, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with open_deployment(servers, tmp_path / "data", **SWEEPS) as deployment:
        yield deployment


def root_of(deployment: Deployment) -> LocalRoot:
    return LocalRoot.at(local_root_of(deployment.settings))


async def parked(deployment: Deployment) -> WorkspaceId:
    """Create a stopped workspace with a file in its home."""
    async with deployment.worker():
        workspace_id = await deployment.create(DesiredState.STANDBY)
        await deployment.wake(workspace_id)
        await deployment.wait_for_phase(workspace_id, Phase.STANDBY)
    (deployment.home(workspace_id) / "thesis").write_bytes(b"three years of work")
    return workspace_id


@asynccontextmanager
async def exchanged_root(deployment: Deployment) -> AsyncIterator[None]:
    """Replace the root that holds the homes with another one."""
    root = root_of(deployment)
    kept = root.path.with_name("kept")
    root.path.rename(kept)
    root.prepare()
    try:
        yield
    finally:
        root.path.rename(root.path.with_name("other"))
        kept.rename(root.path)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("module", ["worker", "api", "proxy"])
async def test_a_process_with_another_root_exits_with_an_explanation(
    deployment: Deployment, tmp_path: Path, module: str
) -> None:
    LocalRoot.at(tmp_path / "elsewhere/local").prepare()
    sentence = await refused(deployment, module, CODEHUB_DATA_DIR=str(tmp_path / "elsewhere"))
    assert f"{root_of(deployment).path}" in sentence
    assert f"{tmp_path}/elsewhere/local" in sentence
    assert "is a different store" in sentence
    assert "`codehub homes adopt`" in sentence


@pytest.mark.timeout(300)
async def test_a_worker_whose_root_was_emptied_exits_with_an_explanation(deployment: Deployment) -> None:
    root = root_of(deployment).path
    root.rename(root.with_name("kept"))
    root.mkdir()
    sentence = await refused(deployment, "worker")
    assert "is empty or not mounted" in sentence
    assert not (root / SENTINEL).exists()


@pytest.mark.timeout(300)
async def test_replacing_the_root_of_a_running_worker_loses_nothing(deployment: Deployment) -> None:
    workspace_id = await parked(deployment)
    async with deployment.worker(), exchanged_root(deployment):
        await deployment.want(workspace_id, DesiredState.RUNNING)
        for _ in range(3):
            seen = await look_again(deployment, workspace_id)
            assert (seen.phase, seen.operation) == (Phase.STANDBY, Operation.NONE)
            assert seen.error_reason is None
    assert (deployment.home(workspace_id) / "thesis").read_bytes() == b"three years of work"
    async with deployment.worker():
        await deployment.wake(workspace_id)
        await deployment.wait_for_phase(workspace_id, Phase.RUNNING)
        assert (deployment.home(workspace_id) / "thesis").read_bytes() == b"three years of work"
        await deployment.move_to(workspace_id, DesiredState.STANDBY)
