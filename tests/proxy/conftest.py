"""A fresh proxy for each test."""

from collections.abc import Iterator

import pytest

from proxy.transport.server_state import Timeouts
from tests.proxy.harness import Harness


@pytest.fixture
def idle_harness() -> Iterator[Harness]:
    """Not started: the test says with which limits and timeouts."""
    harness = Harness()
    yield harness
    harness.close()


@pytest.fixture
def harness(idle_harness: Harness) -> Harness:
    # Nothing ends by itself within a test: what is seen to end was ended on purpose.
    idle_harness.start(timeouts=Timeouts(upstream_idle=60))
    return idle_harness
