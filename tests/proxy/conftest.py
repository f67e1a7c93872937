"""A fresh proxy for each test."""

from collections.abc import Iterator

import pytest

from proxy.transport.shared import Timeouts
from tests.proxy.harness import Bench


@pytest.fixture
def idle_bench() -> Iterator[Bench]:
    """Not started: the test says with which limits and timeouts."""
    bench = Bench()
    yield bench
    bench.close()


@pytest.fixture
def bench(idle_bench: Bench) -> Bench:
    # Nothing ends by itself within a test: what is seen to end was ended on purpose.
    idle_bench.start(timeouts=Timeouts(upstream_idle=60))
    return idle_bench
