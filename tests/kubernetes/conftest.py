"""One test cluster for all tests of this directory, and a namespace for each."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from testkit.docker_engine import JOB_IMAGE, build, need_docker
from testkit.kubernetes import binaries
from testkit.kubernetes.api import Api
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.deadline import wait_until
from testkit.needs import do_without

IDE_IMAGE = "codehub-test-tiny:latest"


def need_cluster() -> None:
    """Skip the test on a machine that cannot run a cluster; fail in CI."""
    try:
        binaries.require()
    except binaries.Unavailable as problem:
        do_without(problem.requirement, problem.remedy)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a running cluster of two nodes that have the images of the tiny IDE and the storage job."""
    need_cluster()
    need_docker(JOB_IMAGE)
    build(IDE_IMAGE, "tiny-ide.Dockerfile")
    cluster = Cluster(tmp_path_factory.mktemp("kubernetes"))
    try:
        cluster.start(nodes=2)
        cluster.load_images(IDE_IMAGE, JOB_IMAGE)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Iterator[Api]:
    """Return a client with all rights."""
    with cluster.api() as api:
        yield api


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """Return the name of a new namespace; it is removed with what is in it."""
    name = f"test-{uuid4().hex[:12]}"
    path = f"/api/v1/namespaces/{name}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"{path}/serviceaccounts/default"
    # Without its token the API server refuses all Pods.
    wait_until(lambda: "secrets" in (api.find(account) or {}), "the service account has a token")
    yield name
    # A namespace goes only when its Pods are gone, and those would be given time to end.
    api.delete(f"{path}/pods", gracePeriodSeconds=0)
    api.delete(path)
