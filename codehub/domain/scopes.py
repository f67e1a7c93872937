"""What a token may do: a subset of what its owner may."""

from collections.abc import Iterable
from enum import StrEnum


class Scope(StrEnum):
    """A part of what a user may do."""

    # Read what its owner can read.
    READ = "read"
    # Create, change and enter workspaces, and end sessions and tokens.
    WORKSPACES = "workspaces"
    # Everything that only administrators may do.
    ADMIN = "admin"


ALL_SCOPES = frozenset(Scope)


def with_implied(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Add `read`, which every scope includes: whoever changes something sees the result."""
    return frozenset({*scopes, Scope.READ})
