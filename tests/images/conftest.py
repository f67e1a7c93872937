"""The images that `make images` builds: skip without them, but fail in CI."""

import pytest

from testkit.docker_engine import JOB_IMAGE, WORKSPACE_IMAGE, need_docker

CONTROL_PLANE_IMAGE = "codehub-control-plane:latest"
IMAGES = (WORKSPACE_IMAGE, JOB_IMAGE, CONTROL_PLANE_IMAGE)


def _needed(image: str) -> str:
    need_docker(image)
    return image


@pytest.fixture(scope="session")
def workspace_image() -> str:
    return _needed(WORKSPACE_IMAGE)


@pytest.fixture(scope="session")
def storage_job_image() -> str:
    return _needed(JOB_IMAGE)


@pytest.fixture(scope="session")
def control_plane_image() -> str:
    return _needed(CONTROL_PLANE_IMAGE)


@pytest.fixture(scope="session", params=IMAGES)
def image(request: pytest.FixtureRequest) -> str:
    """Return each image in turn."""
    return _needed(request.param)
