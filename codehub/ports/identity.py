"""The OpenID provider."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


class ProviderUnavailable(Exception):
    """The identity provider does not respond, or responds with an error of its own; try again later."""


class IdentityRejected(Exception):
    """The provider's response does not prove who signed in; the message is for the log."""


@dataclass(frozen=True)
class SignInSecrets:
    """Random values that tie the provider's response to one sign-in of one browser."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


@dataclass(frozen=True)
class ProvenIdentity:
    """A person that the provider has authenticated. Only issuer and subject identify an account."""

    issuer: str
    subject: str
    username: str | None
    groups: frozenset[str]
    # When the person last authenticated, if the provider says so.
    authenticated_at: datetime | None = None


class IdentityProvider(Protocol):
    """An OpenID provider. Every method raises ProviderUnavailable during an outage."""

    async def check(self) -> str:
        """Return the issuer if the provider is reachable and matches the settings."""
        ...

    async def authorization_url(self, secrets: SignInSecrets, *, fresh: bool) -> str:
        """Return where to send the browser; with `fresh`, the person must authenticate again there."""
        ...

    async def redeem(self, code: str, secrets: SignInSecrets, *, fresh: bool) -> ProvenIdentity:
        """Exchange the code for an identity; raise IdentityRejected unless the ID token is valid.

        With `fresh`, an authentication older than a few minutes is rejected.
        """
        ...
