"""Fixtures for all tests of the Docker backend."""

from collections.abc import Iterator

import pytest

from testkit.docker_engine import JOB_IMAGE, left_behind, need_docker


@pytest.fixture(scope="session", autouse=True)
def engine_with_images() -> Iterator[None]:
    """Assert that the tests leave nothing behind."""
    need_docker(JOB_IMAGE)
    yield
    assert left_behind() == []
