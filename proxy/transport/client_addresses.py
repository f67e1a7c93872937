"""Finds the address of a client, also behind trusted reverse proxies."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

# Internet providers assign at least a /64 to a customer, so single IPv6 addresses say little.
IPV6_PREFIX = 64

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class TrustedProxies:
    """The networks whose `X-Forwarded-For` is trusted."""

    def __init__(self, networks: tuple[str, ...] = ()) -> None:
        self._networks: tuple[Network, ...] = tuple(ip_network(each, strict=False) for each in networks)

    def includes(self, text: str) -> bool:
        if not self._networks:
            return False
        address = parse_address(text)
        return address is not None and any(address in network for network in self._networks)

    def client_of(self, peer: str, forwarded_for: bytes | None) -> str:
        """Return the rightmost untrusted address; entries to its left may be forged by clients."""
        client = peer
        for entry in reversed((forwarded_for or b"").split(b",")):
            if not self.includes(client):
                return client
            address = parse_address(entry.decode("latin-1").strip())
            if address is None:
                return client
            client = str(address)
        return client


@lru_cache(maxsize=1024)
def parse_address(text: str) -> Address | None:
    """Parse an address, with or without a port; return None if it is something else."""
    host = text
    if text.startswith("["):
        host = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        host = text.partition(":")[0]
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


@lru_cache(maxsize=1024)
def group_of(text: str) -> str:
    """Return the key for counting connections: the address, or its network for IPv6."""
    address = parse_address(text)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_PREFIX), strict=False))
    return text if address is None else str(address)
