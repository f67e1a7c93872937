"""Kill the worker around every activity of the Docker backend: it converges and no byte is lost."""

from functools import partial
from pathlib import Path

import pytest

from codehub.domain.states import Operation
from testkit.deployment import Servers
from tests.chaos.crash_matrix import crash_at_every_point
from tests.docker.harness import open_docker_deployment

AT_ONCE = 3


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "operation", [Operation.STARTING, Operation.ARCHIVING, Operation.RESTORING, Operation.DELETING]
)
async def test_a_killed_worker_loses_nothing_during(
    operation: Operation, servers: Servers, tmp_path: Path
) -> None:
    await crash_at_every_point(operation, partial(open_docker_deployment, servers), tmp_path, AT_ONCE)
