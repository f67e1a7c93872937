"""Validation of ID tokens: who issued one, for whom, for which sign-in, and until when."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from codehub.ports import IdentityRejected

# Asymmetric signatures only. A token that is unsigned, or signed with a shared secret or the public key,
# proves nothing.
ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
)
# Clocks of two servers differ.
LEEWAY_SECONDS = 60
# The longest time since authentication for a sign-in that must be fresh.
FRESH_SECONDS = 300
MAX_SUBJECT_LENGTH = 255


class UnknownKey(Exception):
    """The token names a key that is not in the key set; the provider may have rotated its keys."""


@dataclass(frozen=True)
class Expectation:
    """The values that the token of one sign-in must have."""

    issuer: str
    client_id: str
    nonce: str
    fresh: bool


def validate(token: str, keys: KeySet, expected: Expectation, *, now: int) -> dict[str, Any]:
    """Return the claims; raise IdentityRejected, or UnknownKey if newer keys might help."""
    claims = _verify_signature(token, keys)
    registry = jwt.JWTClaimsRegistry(
        now,
        LEEWAY_SECONDS,
        iss={"essential": True, "value": expected.issuer},
        sub={"essential": True},
        aud={"essential": True, "value": expected.client_id},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": expected.nonce},
    )
    try:
        registry.validate(claims)
    except JoseError as error:
        raise IdentityRejected(f"the ID token has a wrong claim: {error}") from error
    _check_authorized_party(claims, expected.client_id)
    _check_subject(claims["sub"])
    if expected.fresh:
        _check_freshness(claims, now)
    return claims


def authentication_time(claims: Mapping[str, Any]) -> datetime | None:
    """Return when the person authenticated, or None if the token does not say so."""
    seconds = claims.get("auth_time")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _verify_signature(token: str, keys: KeySet) -> dict[str, Any]:
    try:
        return jwt.decode(token, keys, algorithms=ALGORITHMS).claims
    except InvalidKeyIdError as error:
        raise UnknownKey(str(error)) from error
    except (JoseError, ValueError) as error:
        raise IdentityRejected(f"the ID token is not signed as it must be: {error}") from error


def _check_authorized_party(claims: Mapping[str, Any], client_id: str) -> None:
    """Check `azp`: a token for several audiences must name the client that asked for it."""
    audiences = claims["aud"]
    needed = isinstance(audiences, list) and len(audiences) > 1
    party = claims.get("azp")
    if (needed or party is not None) and party != client_id:
        raise IdentityRejected("another client asked for the ID token")


def _check_subject(subject: str) -> None:
    """OpenID Connect allows up to 255 ASCII characters; the database cannot store everything else."""
    if len(subject) > MAX_SUBJECT_LENGTH or not (subject.isascii() and subject.isprintable()):
        raise IdentityRejected("the subject of the ID token is not a name of up to 255 ASCII characters")


def _check_freshness(claims: Mapping[str, Any], now: int) -> None:
    authenticated_at = authentication_time(claims)
    if authenticated_at is None:
        raise IdentityRejected("the ID token does not say when the person authenticated (auth_time)")
    if authenticated_at.timestamp() < now - FRESH_SECONDS:
        raise IdentityRejected("the person authenticated too long ago")
