"""Fixtures of the tests of instances and volumes: a namespace for a module, a harness for each test."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from testkit.kubernetes.cluster import Cluster
from tests.contracts.home_store_harness import HomeStoreHarness, OpenStore
from tests.contracts.kubernetes_harness import (
    KubernetesHarness,
    Namespace,
    opened_harness,
    opened_namespace,
)


@pytest.fixture(scope="module")
def shared_namespace(cluster: Cluster) -> Iterator[Namespace]:
    with opened_namespace(cluster) as opened:
        yield opened


@pytest.fixture
async def harness(shared_namespace: Namespace, tmp_path: Path) -> AsyncIterator[KubernetesHarness]:
    async with opened_harness(shared_namespace, tmp_path) as opened:
        yield opened


@pytest.fixture
def open_store(shared_namespace: Namespace, tmp_path: Path) -> OpenStore:
    async def open_one(name: str, stack: AsyncExitStack) -> HomeStoreHarness:
        directory = tmp_path / name
        directory.mkdir()
        return await stack.enter_async_context(opened_harness(shared_namespace, directory))

    return open_one
