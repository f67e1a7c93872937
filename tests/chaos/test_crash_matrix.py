"""Kill the worker before and after every activity of every operation: it converges and no byte is lost."""

from functools import partial
from pathlib import Path

import pytest

from codehub.domain.states import Operation
from testkit.deployment import Servers, open_deployment
from tests.chaos.crash_matrix import COURSES, crash_at_every_point

AT_ONCE = 4


@pytest.mark.timeout(600)
@pytest.mark.parametrize("operation", COURSES)
async def test_a_killed_worker_loses_nothing_during(
    operation: Operation, servers: Servers, tmp_path: Path
) -> None:
    opened = partial(open_deployment, servers)
    await crash_at_every_point(operation, opened, tmp_path, AT_ONCE)
