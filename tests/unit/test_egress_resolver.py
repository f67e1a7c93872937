"""Workspaces share the resolver: one that asks for names that hang delays only itself."""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from codehub.domain.egress import Address
from egress.fair_resolver import FairResolver
from testkit.rows import new_workspace_id

FOUND = [ip_address("198.51.100.2")]


class Names:
    """Names below `silent` are not resolved until they are released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.running = 0

    async def __call__(self, host: str) -> Sequence[Address]:
        self.running += 1
        if host.endswith("silent"):
            await self.released.wait()
        self.running -= 1
        if host == "unknown":
            raise OSError(host)
        return FOUND


async def test_lookups_that_hang_use_up_the_share_of_one_workspace_only() -> None:
    names, greedy, other = Names(), new_workspace_id(), new_workspace_id()
    resolve = FairResolver(names, 3)
    for number in range(10):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await resolve(greedy, f"{number}.silent")
    # Its callers have given up, but the resolver still works for them.
    assert names.running == 3
    assert await resolve(other, "site.example") == FOUND
    names.released.set()
    assert await resolve(greedy, "site.example") == FOUND
    assert names.running == 0


async def test_a_name_that_fails_gives_its_share_back() -> None:
    resolve, workspace_id = FairResolver(Names(), 1), new_workspace_id()
    for _ in range(3):
        with pytest.raises(OSError, match="unknown"):
            await resolve(workspace_id, "unknown")
    assert await resolve(workspace_id, "site.example") == FOUND
