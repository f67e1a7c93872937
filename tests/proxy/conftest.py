"""A new proxy for each test."""

from collections.abc import Iterator

import pytest

from proxy.transport.server_state import Timeouts
from tests.proxy.harness import Harness


@pytest.fixture
def idle_harness() -> Iterator[Harness]:
    """A proxy that the test starts itself, with its own limits and timeouts."""
    harness = Harness()
    yield harness
    harness.close()


@pytest.fixture
def harness(idle_harness: Harness) -> Harness:
    # Long enough that nothing times out during a test.
    idle_harness.start(timeouts=Timeouts(upstream_idle=60))
    return idle_harness
