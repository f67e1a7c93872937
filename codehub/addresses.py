"""Client addresses as rate limits count them; the proxy's transport, which stands alone, does the same."""

from ipaddress import IPv6Address, ip_address, ip_network

# Providers give a customer at least this much of IPv6, so one address says nothing.
IPV6_PREFIX = 64


def address_group(text: str) -> str:
    """Return the address, or the network of an IPv6 address; anything else stays as it is."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    address = getattr(address, "ipv4_mapped", None) or address
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_PREFIX), strict=False))
    return str(address)
