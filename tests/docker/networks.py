"""Networks for a single test."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from testkit.docker_engine import Engine, docker


@contextmanager
def own_network(engine: Engine) -> Iterator[str]:
    """Return a network name. If the network was created, remove it and the test's containers on it."""
    name = f"codehub-test-{uuid4()}"
    try:
        yield name
    finally:
        engine.clean_up()
        if docker("network", "ls", "--quiet", "--filter", f"name=^{name}$"):
            docker("network", "rm", name)
