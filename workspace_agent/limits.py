"""Limits that this process sets for itself and all processes that it starts."""

import resource
from collections.abc import Mapping

KINDS = {"processes": resource.RLIMIT_NPROC, "data_bytes": resource.RLIMIT_DATA}


def set_limits(limits: Mapping[str, int]) -> None:
    """Set each limit for good, but never above one that is already set."""
    for name, value in limits.items():
        _, hard = resource.getrlimit(KINDS[name])
        lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(KINDS[name], (lowest, lowest))
