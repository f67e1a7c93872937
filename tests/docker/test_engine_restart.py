"""The engine stops or is killed in the middle of an operation: it converges and nothing is lost."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from codehub.domain.states import DesiredState, Operation, Phase
from gameday.faults.dockerd import Engine
from testkit.deployment import Servers
from testkit.trees import describe_tree
from testkit.waiting import until
from tests.docker.harness import open_docker_deployment

BALLAST_BYTES = 100 * 1024 * 1024
SWEEPS = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "2"}


@pytest.fixture
def restart_log(tmp_path: Path) -> Path:
    """Where the new engine writes its log; a developer's own engine is left alone."""
    if os.environ.get("CI") != "true":
        pytest.skip("it would restart this machine's engine")
    return tmp_path / "dockerd.log"


def engine_answers() -> bool:
    command = ("docker", "info")
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_restarted_engine_loses_nothing(
    number: signal.Signals, restart_log: Path, servers: Servers, tmp_path: Path
) -> None:
    async with open_docker_deployment(servers, tmp_path, **SWEEPS) as deployment:
        with deployment.worker_process():
            workspace_id = await deployment.create_large(BALLAST_BYTES)
            before = describe_tree(deployment.home(workspace_id))
            for desired, operation in (
                (DesiredState.ARCHIVED, Operation.ARCHIVING),
                (DesiredState.STANDBY, Operation.RESTORING),
                (DesiredState.RUNNING, Operation.STARTING),
            ):
                await deployment.want(workspace_id, desired)
                await deployment.wake(workspace_id)
                await deployment.wait_for_operation(workspace_id, operation)
                await asyncio.to_thread(Engine.find().restart, number, restart_log)
                await until(lambda: asyncio.to_thread(engine_answers), "the engine answers")
                await deployment.wait_for_phase(workspace_id, Phase(desired.value))
            assert describe_tree(deployment.home(workspace_id)) == before
