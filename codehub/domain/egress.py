"""Decides which outside connections a workspace may make: names by policy, addresses by tables."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

LONGEST_NAME = 253
MOST_NAMES = 200
LAST_PORT = 65535
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# inet_aton reads all of these as numbers: 127.1, 0x7f.1, 0177.0.0.1, 2130706433.
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
WILDCARD = "*."


class EgressMode(StrEnum):
    """What a policy permits."""

    OPEN = "open"
    ALLOW_LIST = "allow-list"
    NONE = "none"


class Refusal(StrEnum):
    """Why a connection is refused."""

    INVALID_NAME = "invalid-name"
    POLICY = "policy"
    PRIVATE_ADDRESS = "private-address"
    OWN_SERVER = "own-server"


class Verdict(StrEnum):
    """The result of a connection, as logged for people."""

    ALLOWED = "allowed"
    REFUSED = "refused"


# The log entry that counts names beyond the limit of entries.
OTHER_NAMES = "*"


class InvalidName(ValueError):
    """Invalid entry of an allow-list; the message says what to write."""


@dataclass(frozen=True)
class EgressPolicy:
    """A mode, and the names that `allow-list` permits: exact ones, and `*.suffix` for all names below it."""

    mode: EgressMode = EgressMode.OPEN
    names: frozenset[str] = frozenset()

    def allows(self, host: str) -> bool:
        if self.mode is EgressMode.ALLOW_LIST:
            return not self.names.isdisjoint(_patterns_of(host))
        return self.mode is EgressMode.OPEN


@dataclass(frozen=True)
class EgressRules:
    """The policies that apply to a workspace. Each of them must permit a connection."""

    policies: tuple[EgressPolicy, ...]

    def allow(self, host: str) -> bool:
        return all(policy.allows(host) for policy in self.policies)


@dataclass(frozen=True)
class OwnServers:
    """What workspaces never reach: this machine's addresses, CodeHub's servers, networks of the operator."""

    addresses: frozenset[Address] = frozenset()
    endpoints: frozenset[tuple[Address, int]] = frozenset()
    names: frozenset[tuple[str, int]] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    # Below it are the workspaces.
    domain: str = "localhost"

    def include(self, address: Address, port: int) -> bool:
        if address in self.addresses or (address, port) in self.endpoints:
            return True
        return any(address in network for network in self.networks)


def rules_for(
    installation: EgressPolicy,
    limit: EgressPolicy | None,
    choice: EgressPolicy | None,
    *,
    owners_may_loosen: bool,
) -> EgressRules:
    """Combine the installation's policy, an administrator's limit and the owner's choice.

    A limit replaces the installation's policy. A choice can only tighten, unless owners may loosen: then it
    replaces the installation's policy, but never a limit.
    """
    if choice is None:
        return EgressRules((limit or installation,))
    if limit is None and owners_may_loosen:
        return EgressRules((choice,))
    return EgressRules((limit or installation, choice))


def parse_host(text: str) -> str | None:
    """Return the host as a lower-case name or canonical address, or None if it is neither.

    Names must be ASCII, which every client sends. inet_aton would read a name that ends in a number as an
    address, so only addresses in canonical form pass.
    """
    if literal := _parse_address(text):
        return str(literal)
    host = text.lower().removesuffix(".")
    labels = host.split(".")
    if len(host) > LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        return None
    return None if _NUMERIC_LABEL.fullmatch(labels[-1]) else host


def parse_pattern(text: str) -> str:
    """Return an allow-list entry in canonical form. Raise InvalidName."""
    wildcard = WILDCARD if text.strip().startswith(WILDCARD) else ""
    host = parse_host(text.strip().removeprefix(wildcard))
    if host is None or (wildcard and parse_address(host)):
        raise InvalidName(
            f"{text[:LONGEST_NAME]!r} is not a name; write github.com or *.githubusercontent.com."
        )
    return wildcard + host


def parse_policy(mode: EgressMode, names: Iterable[str]) -> EgressPolicy:
    """Return the policy; only an allow-list has names. Raise InvalidName."""
    parsed = frozenset(map(parse_pattern, names))
    if parsed and mode is not EgressMode.ALLOW_LIST:
        raise InvalidName("Only the mode allow-list takes names.")
    if len(parsed) > MOST_NAMES:
        raise InvalidName(f"An allow-list has at most {MOST_NAMES} names; use *.suffix for many names.")
    return EgressPolicy(mode, parsed)


def parse_address(host: str) -> Address | None:
    """Return the address if the host is one in canonical form."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def verdict_of(refusal: Refusal | None) -> Verdict:
    return Verdict.ALLOWED if refusal is None else Verdict.REFUSED


def judge_name(rules: EgressRules, own: OwnServers, host: str, port: int) -> Refusal | None:
    """Check the name before it is resolved; return why it is refused, or None."""
    if (host, port) in own.names or host.endswith(f".{own.domain}"):
        return Refusal.OWN_SERVER
    return None if rules.allow(host) else Refusal.POLICY


def judge_addresses(own: OwnServers, addresses: Iterable[Address], port: int) -> Refusal | None:
    """Check the resolved addresses. One forbidden address refuses the name: legitimate names have none."""
    for address in addresses:
        inner = _unwrap(address)
        if not is_public(inner):
            return Refusal.PRIVATE_ADDRESS
        if own.include(address, port) or own.include(inner, port):
            return Refusal.OWN_SERVER
    return None


def is_public(address: Address) -> bool:
    """Return whether the address is on the internet: not this host, its networks or a special range."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in REFUSED_IPV4)
    return address in GLOBAL_UNICAST and not any(address in network for network in REFUSED_IPV6)


REFUSED_IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this host; 0.0.0.0 connects to loopback
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT, and a cloud's metadata
            "127.0.0.0/8",
            "168.63.129.16/32",  # the metadata address of a cloud, outside of every private range
            "169.254.0.0/16",  # link-local, and the metadata of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments, and a cloud's metadata
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks of network devices
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
# All other IPv6 is loopback, link-local, private, multicast or an embedded IPv4 address.
GLOBAL_UNICAST = IPv6Network("2000::/3")
REFUSED_IPV6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # Teredo, which contains IPv4 addresses, and protocol assignments
            "2002::/16",  # 6to4, which contains IPv4 addresses
        ),
    )
)
# NAT64: IPv6-only networks reach public IPv4 addresses through this prefix.
NAT64 = IPv6Network("64:ff9b::/96")


def _unwrap(address: Address) -> Address:
    if isinstance(address, IPv6Address) and address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _parse_address(text: str) -> Address | None:
    """Parse an address as in a request: IPv6 may be in brackets; zones are not allowed."""
    bracketed = text.startswith("[") and text.endswith("]")
    address = parse_address(text[1:-1] if bracketed else text)
    if isinstance(address, IPv4Address):
        return None if bracketed else address
    return None if address is None or address.scope_id else address


def _patterns_of(host: str) -> set[str]:
    """Return every entry of an allow-list that matches this host."""
    labels = host.split(".")
    below = {WILDCARD + ".".join(labels[index:]) for index in range(1, len(labels))}
    return {host} if parse_address(host) else {host, *below}
