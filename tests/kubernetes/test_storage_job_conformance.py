"""Storage jobs as Pods pass the same suite as those of the other backends."""

# The tests are those of the suite, with another harness.
from tests.contracts.test_storage_jobs import *  # noqa: F403
from tests.kubernetes.job_fixtures import harness, shared_namespace

__all__ = ["harness", "shared_namespace"]
