"""Kill the worker around every activity that changes the engine: it converges and no byte is lost.

The steps that all operations have change only rows; the matrix of the local backend includes them.
"""

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
    opened = partial(open_docker_deployment, servers)
    await crash_at_every_point(operation, opened, tmp_path, AT_ONCE, common_steps=())
