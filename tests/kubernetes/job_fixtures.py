"""Fixtures of the tests of storage jobs: a namespace for a module, a harness for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.buckets import Bucket
from tests.contracts.kubernetes_harness import Namespace
from tests.contracts.kubernetes_job_harness import KubernetesJobHarness, opened_job_harness
from tests.kubernetes.fixtures import shared_namespace

__all__ = ["harness", "shared_namespace"]


@pytest.fixture
async def harness(
    shared_namespace: Namespace, bucket: Bucket, tmp_path: Path
) -> AsyncIterator[KubernetesJobHarness]:
    async with opened_job_harness(shared_namespace, bucket, tmp_path) as opened:
        yield opened
