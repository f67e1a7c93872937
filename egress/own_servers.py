"""CodeHub's own addresses, which workspaces never reach: this machine's and those of its servers."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import urlsplit

import psutil

from codehub.domain.egress import Address, OwnServers, parse_address, parse_host
from codehub.settings import Settings
from codehub.settings.types import split_networks
from egress.dialer import Resolve

logger = logging.getLogger(__name__)

_PORTS = {"http": 80, "https": 443, "postgres": 5432, "postgresql": 5432, "redis": 6379, "rediss": 6379}
Endpoint = tuple[str, int]


@dataclass
class OwnServersWatch:
    """The current own servers; `refresh` resolves their names and reads the machine's addresses again."""

    endpoints: frozenset[Endpoint]
    networks: tuple[IPv4Network | IPv6Network, ...]
    resolve: Resolve
    domain: str
    current: OwnServers = field(default_factory=OwnServers)
    _resolved: dict[Endpoint, frozenset[tuple[Address, int]]] = field(default_factory=dict)

    async def refresh(self) -> None:
        for endpoint in self.endpoints:
            await self._resolve(endpoint)
        self.current = OwnServers(
            addresses=frozenset(_machine_addresses()),
            endpoints=frozenset(each for found in self._resolved.values() for each in found),
            names=self.endpoints,
            networks=self.networks,
            domain=self.domain,
        )

    async def _resolve(self, endpoint: Endpoint) -> None:
        host, port = endpoint
        literal = parse_address(host)
        try:
            addresses = [literal] if literal else await self.resolve(host)
        except OSError:
            # The last known addresses, and the name, remain refused.
            logger.warning("the server %s cannot be resolved", host)
        else:
            self._resolved[endpoint] = frozenset((address, port) for address in addresses)


def watch_own_servers(settings: Settings, resolve: Resolve) -> OwnServersWatch:
    networks = tuple(
        ip_network(each, strict=False) for each in split_networks(settings.egress.refused_networks)
    )
    return OwnServersWatch(frozenset(_endpoints(settings)), networks, resolve, settings.origins.domain)


def _endpoints(settings: Settings) -> Iterable[Endpoint]:
    secret_urls = (settings.database.url, settings.redis.url)
    urls = [url.get_secret_value().replace("+asyncpg", "") for url in secret_urls if url]
    urls += [
        url for url in (settings.s3.endpoint_url, settings.public_base_url, settings.proxy.api_url) if url
    ]
    if settings.temporal.address:
        urls.append(f"temporal://{settings.temporal.address}")
    for url in urls:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        host = parse_host(parts.hostname or "")
        # A UNIX socket has no host.
        if host and port:
            yield host, port


def _machine_addresses() -> Iterable[Address]:
    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            # Strip the zone of link-local addresses. Hardware addresses do not parse.
            if address := parse_address(each.address.partition("%")[0]):
                yield address
