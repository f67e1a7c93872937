"""Groups client addresses for rate limits and lockouts; the proxy's transport has its own copy."""

from ipaddress import IPv6Address, ip_address, ip_network

# Internet providers assign at least a /64 to a customer, so single IPv6 addresses say little.
IPV6_PREFIX = 64


def address_group(text: str) -> str:
    """Return the address, or the network of an IPv6 address; return any other text unchanged."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    address = getattr(address, "ipv4_mapped", None) or address
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_PREFIX), strict=False))
    return str(address)
