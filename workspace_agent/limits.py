"""Resource limits of the agent, which all processes that it starts inherit."""

import resource
from collections.abc import Mapping

KINDS = {"processes": resource.RLIMIT_NPROC, "data_bytes": resource.RLIMIT_DATA}


def set_limits(limits: Mapping[str, int]) -> None:
    """Set soft and hard limits, but never raise one."""
    for name, value in limits.items():
        _, hard = resource.getrlimit(KINDS[name])
        lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(KINDS[name], (lowest, lowest))
