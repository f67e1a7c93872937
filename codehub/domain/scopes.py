"""Scopes of tokens: each is a subset of the owner's rights."""

from collections.abc import Iterable
from enum import StrEnum


class Scope(StrEnum):
    """A subset of a user's rights."""

    # Read everything that the owner can read.
    READ = "read"
    # Create, change and enter workspaces, and end sessions and tokens.
    WORKSPACES = "workspaces"
    # Everything that only administrators may do.
    ADMIN = "admin"


ALL_SCOPES = frozenset(Scope)


def with_implied(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Add `read`, which every scope includes, because changes return what they changed."""
    return frozenset({*scopes, Scope.READ})
