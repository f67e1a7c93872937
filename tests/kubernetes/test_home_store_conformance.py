"""A namespace as a home store passes the same suite as those of the other backends."""

# The tests are those of the suite, with other stores.
from tests.contracts.test_home_stores import *  # noqa: F403
from tests.kubernetes.fixtures import open_store, shared_namespace

__all__ = ["open_store", "shared_namespace"]
