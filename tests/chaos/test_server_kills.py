"""Kill each server in the middle of an operation: it converges after the restart and nothing is lost."""

from pathlib import Path

import pytest

from codehub.domain.states import DesiredState, Operation, Phase
from testkit.deployment import Servers, open_deployment

BALLAST_BYTES = 150 * 1024 * 1024
SWEEPS = {"CODEHUB_SWEEPS_OBSERVE_SECONDS": "2"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("server", ["postgres", "redis", "s3", "temporal"])
async def test_a_killed_server_loses_nothing(server: str, servers: Servers, tmp_path: Path) -> None:
    async with open_deployment(servers, tmp_path, **SWEEPS) as deployment:
        with deployment.worker_process():
            workspace_id = await deployment.create_large(BALLAST_BYTES)
            before = deployment.describe_home(workspace_id)
            for desired, operation in (
                (DesiredState.ARCHIVED, Operation.ARCHIVING),
                (DesiredState.STANDBY, Operation.RESTORING),
            ):
                await deployment.want(workspace_id, desired)
                await deployment.wake(workspace_id)
                await deployment.wait_for_operation(workspace_id, operation)
                await servers.stack.kill(server)
                await servers.stack.wait_ready(server)
                await deployment.wait_for_phase(workspace_id, Phase(desired.value))
            assert deployment.describe_home(workspace_id) == before
