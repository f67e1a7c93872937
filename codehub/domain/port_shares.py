"""Decides who besides the owner may open a port of a workspace, and until when."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

FIRST_PORT = 1
LAST_PORT = 65535
# The relay to the egress gateway, which adds the token of the workspace.
RESERVED_PORTS = frozenset({3128})
# Keeps the row small and the list readable.
MOST_SHARES = 50
DEFAULT_LIFETIME = timedelta(hours=8)


class Audience(StrEnum):
    """Who may open a shared port besides the owner."""

    USERS = "users"
    PUBLIC = "public"


class Sharing(StrEnum):
    """The widest audience that administrators allow."""

    NONE = "none"
    USERS = "users"
    PUBLIC = "public"

    def limit(self, audience: Audience) -> Audience | None:
        """Return the audience, narrowed to what administrators allow; None means nobody."""
        if self is Sharing.PUBLIC:
            return audience
        return Audience.USERS if self is Sharing.USERS else None


class ShareRefused(ValueError):
    """This port cannot be shared in this way; the message says why and what to do."""


@dataclass(frozen=True)
class PortShare:
    """One shared port. Without an expiry it is shared until its owner stops it."""

    audience: Audience
    created_at: datetime
    expires_at: datetime | None = None

    def has_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


PortShares: TypeAlias = Mapping[int, PortShare]


@dataclass(frozen=True)
class SharingRules:
    """Administrators' rules: the widest audience and the longest lifetime (None means no limit)."""

    sharing: Sharing = Sharing.USERS
    longest: timedelta | None = None

    @property
    def default_lifetime(self) -> timedelta:
        return DEFAULT_LIFETIME if self.longest is None else min(DEFAULT_LIFETIME, self.longest)

    def check(self, audience: Audience, lifetime: timedelta | None) -> None:
        """Raise ShareRefused if administrators do not allow this."""
        if self.sharing.limit(audience) is not audience:
            raise ShareRefused(_NOT_ALLOWED[self.sharing])
        if self.longest is not None and (lifetime is None or lifetime > self.longest):
            seconds = round(self.longest.total_seconds())
            raise ShareRefused(
                f"A port can be shared for at most {seconds} seconds; choose an expiry, or ask an "
                "administrator to raise CODEHUB_PORTS_MAX_SHARE_SECONDS."
            )


_NOT_ALLOWED = {
    Sharing.NONE: "Ports cannot be shared here; ask an administrator to change CODEHUB_PORTS_SHARING.",
    Sharing.USERS: "Ports can be shared with signed-in users only; ask an administrator to set "
    "CODEHUB_PORTS_SHARING to public.",
}


def is_shareable(port: int) -> bool:
    """Return whether this port number can be opened at all."""
    return FIRST_PORT <= port <= LAST_PORT and port not in RESERVED_PORTS


def audience_of(
    shares: PortShares, port: int, now: datetime, sharing: Sharing = Sharing.PUBLIC
) -> Audience | None:
    """Return who may open the port besides the owner; None means nobody.

    The administrators' current rules also limit earlier shares.
    """
    share = shares.get(port)
    if share is None or share.has_expired(now):
        return None
    return sharing.limit(share.audience)


def shares_in_force(shares: PortShares, now: datetime, sharing: Sharing = Sharing.PUBLIC) -> PortShares:
    """Return the shares in force, with their audience as administrators limit it."""
    found = {port: audience_of(shares, port, now, sharing) for port in sorted(shares)}
    return {
        port: PortShare(audience, shares[port].created_at, shares[port].expires_at)
        for port, audience in found.items()
        if audience
    }


def add_share(shares: PortShares, port: int, new: PortShare) -> PortShares:
    """Return the shares with this one added, without expired ones. Raise ShareRefused."""
    if not is_shareable(port):
        raise ShareRefused(f"Port {port} cannot be shared; choose another from {FIRST_PORT} to {LAST_PORT}.")
    rest = {each: kept for each, kept in shares.items() if not kept.has_expired(new.created_at)}
    if port not in rest and len(rest) >= MOST_SHARES:
        raise ShareRefused(f"{MOST_SHARES} ports are shared, the maximum; stop sharing one first.")
    return {**rest, port: new}


def remove_share(shares: PortShares, port: int) -> PortShares:
    """Return the shares without this port."""
    return {each: kept for each, kept in shares.items() if each != port}


def serialize(shares: PortShares) -> dict[str, Any]:
    """Return the shares as they are stored."""
    return {
        str(port): {
            "audience": each.audience.value,
            "created_at": each.created_at.isoformat(),
            "expires_at": each.expires_at.isoformat() if each.expires_at else None,
        }
        for port, each in sorted(shares.items())
    }


def parse(stored: Mapping[str, Any]) -> PortShares:
    """Parse the stored shares. One with an audience of another release admits nobody."""
    return {int(port): _parse_share(each) for port, each in stored.items() if each["audience"] in _AUDIENCES}


_AUDIENCES = frozenset(Audience)


def _parse_share(stored: Mapping[str, Any]) -> PortShare:
    expires_at = stored["expires_at"]
    return PortShare(
        Audience(stored["audience"]),
        datetime.fromisoformat(stored["created_at"]),
        datetime.fromisoformat(expires_at) if expires_at else None,
    )
