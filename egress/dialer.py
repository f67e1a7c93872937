"""Resolves a name, checks its addresses, and connects to one of the addresses that were checked."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
from typing import cast

from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import (
    Address,
    EgressRules,
    OwnServers,
    Refusal,
    judge_addresses,
    judge_name,
    parse_address,
)
from egress.target import Failure, Target

RESOLVER_THREADS = 32
# Two per family: a third rarely works where two failed, and each attempt can cost a timeout.
MOST_ADDRESSES = 4

Resolve = Callable[[str], Awaitable[Sequence[Address]]]
ResolveFor = Callable[[WorkspaceId, str], Awaitable[Sequence[Address]]]


class Refused(Exception):
    """The rules forbid the connection."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


class Failed(Exception):
    """The rules permit the connection, but it cannot be made."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.value)
        self.failure = failure


class SystemResolver:
    """The resolver of this machine, in its own thread pool."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolver")

    async def __call__(self, host: str) -> list[Address]:
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host)
        # Without duplicates, in the order of preference.
        return list(dict.fromkeys(ip_address(address) for address in found))


def _look_up(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # Strip the zone, as in fe80::1%eth0: the address is still recognized as link-local.
    return [str(address[0]).partition("%")[0] for *_, address in found]


class _Paused(asyncio.Protocol):
    """Pauses reading, so that nothing is lost if the server speaks first."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).pause_reading()


@dataclass(frozen=True)
class Dialer:
    """Makes the connections that the rules permit."""

    resolve: ResolveFor
    own: Callable[[], OwnServers]
    resolve_seconds: float
    connect_seconds: float

    async def dial(self, workspace_id: WorkspaceId, target: Target, rules: EgressRules) -> asyncio.Transport:
        """Connect, and pause reading until a protocol takes over. Raise Refused or Failed."""
        own = self.own()
        if refusal := judge_name(rules, own, target.host, target.port):
            raise Refused(refusal)
        addresses = await self._addresses(workspace_id, target.host)
        if refusal := judge_addresses(own, addresses, target.port):
            raise Refused(refusal)
        return await self._connect(addresses[:MOST_ADDRESSES], target.port)

    async def _addresses(self, workspace_id: WorkspaceId, host: str) -> Sequence[Address]:
        if literal := parse_address(host):
            return [literal]
        try:
            async with asyncio.timeout(self.resolve_seconds):
                addresses = await self.resolve(workspace_id, host)
        except TimeoutError as error:
            raise Failed(Failure.TIMEOUT) from error
        except (OSError, UnicodeError) as error:
            raise Failed(Failure.UNKNOWN_NAME) from error
        if not addresses:
            raise Failed(Failure.UNKNOWN_NAME)
        return addresses

    async def _connect(self, addresses: Sequence[Address], port: int) -> asyncio.Transport:
        failure = Failure.UNREACHABLE
        for address in addresses:
            try:
                async with asyncio.timeout(self.connect_seconds):
                    # An IP address is not resolved again, so this is the address that was checked.
                    transport, _ = await asyncio.get_running_loop().create_connection(
                        _Paused, str(address), port
                    )
            except TimeoutError:
                failure = Failure.TIMEOUT
            except OSError:
                failure = Failure.UNREACHABLE
            else:
                return transport
        raise Failed(failure)
