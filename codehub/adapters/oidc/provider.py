"""The OpenID provider: builds authorization URLs, and exchanges codes for identities."""

import base64
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx
from joserfc.jwk import KeySet

from codehub.adapters.oidc.id_tokens import Expectation, UnknownKey, authentication_time, validate
from codehub.adapters.oidc.metadata import Metadata, fetch_json, load_keys, load_metadata
from codehub.ports import IdentityRejected, ProvenIdentity, ProviderUnavailable, SignInSecrets

TIMEOUT = httpx.Timeout(10, connect=5)
# Providers rarely move endpoints, and announce it.
METADATA_SECONDS = 3600
SERVER_ERROR = 500
SUCCESS = 200


@dataclass(frozen=True)
class OidcOptions:
    """CodeHub's registration at the provider, and the claims to read."""

    issuer: str
    client_id: str
    client_secret: str | None = field(repr=False)
    redirect_uri: str
    scopes: str
    username_claim: str
    groups_claim: str


class OidcProvider:
    """The `IdentityProvider` that the settings describe."""

    def __init__(self, options: OidcOptions, client: httpx.AsyncClient) -> None:
        self._options = options
        self._client = client
        self._metadata: Metadata | None = None
        self._metadata_expires = 0.0
        self._keys: KeySet | None = None

    async def check(self) -> str:
        metadata = await load_metadata(self._client, self._options.issuer)
        await load_keys(self._client, metadata)
        return metadata.issuer

    async def authorization_url(self, secrets: SignInSecrets, *, fresh: bool) -> str:
        metadata = await self._read_metadata()
        parameters = {
            "response_type": "code",
            "client_id": self._options.client_id,
            "redirect_uri": self._options.redirect_uri,
            "scope": self._options.scopes,
            "state": secrets.state,
            "nonce": secrets.nonce,
            "code_challenge": _challenge(secrets.verifier),
            "code_challenge_method": "S256",
        }
        if fresh:
            # Some providers support only one of the two; the ID token must prove it in any case.
            parameters |= {"prompt": "login", "max_age": "0"}
        separator = "&" if urlsplit(metadata.authorization_endpoint).query else "?"
        return f"{metadata.authorization_endpoint}{separator}{urlencode(parameters)}"

    async def redeem(self, code: str, secrets: SignInSecrets, *, fresh: bool) -> ProvenIdentity:
        metadata = await self._read_metadata()
        tokens = await self._exchange(metadata, code, secrets.verifier)
        id_token = tokens.get("id_token")
        if not isinstance(id_token, str):
            raise IdentityRejected("the provider sent no ID token")
        expected = Expectation(metadata.issuer, self._options.client_id, secrets.nonce, fresh)
        claims = await self._validate(metadata, id_token, expected)
        claims = await self._complete(metadata, claims, tokens.get("access_token"))
        return ProvenIdentity(
            issuer=metadata.issuer,
            subject=claims["sub"],
            username=_text(claims.get(self._options.username_claim)),
            groups=_names(claims.get(self._options.groups_claim)),
            authenticated_at=authentication_time(claims),
        )

    async def _read_metadata(self) -> Metadata:
        if self._metadata is None or time.monotonic() >= self._metadata_expires:
            self._metadata = await load_metadata(self._client, self._options.issuer)
            self._metadata_expires = time.monotonic() + METADATA_SECONDS
        return self._metadata

    async def _exchange(self, metadata: Metadata, code: str, verifier: str) -> Mapping[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._options.redirect_uri,
            "client_id": self._options.client_id,
            "code_verifier": verifier,
        }
        secret = self._options.client_secret
        auth: httpx.Auth = httpx.Auth()
        if secret is not None and metadata.posts_secret:
            form["client_secret"] = secret
        elif secret is not None:
            # RFC 6749 requires form encoding of both.
            auth = httpx.BasicAuth(quote_plus(self._options.client_id), quote_plus(secret))
        try:
            response = await self._client.post(metadata.token_endpoint, data=form, auth=auth)
            document = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ProviderUnavailable(f"token endpoint: {error or type(error).__name__}") from error
        if response.status_code >= SERVER_ERROR or not isinstance(document, dict):
            raise ProviderUnavailable(f"token endpoint: status {response.status_code}")
        if response.status_code != SUCCESS:
            # `invalid_grant` for a used code, `invalid_client` for a wrong secret.
            raise IdentityRejected(f"the provider refused the code: {document.get('error')}")
        return document

    async def _validate(self, metadata: Metadata, token: str, expected: Expectation) -> dict[str, Any]:
        """Validate with the cached keys, then with fresh ones: providers rotate keys without notice."""
        now = int(time.time())
        if self._keys is not None:
            try:
                return validate(token, self._keys, expected, now=now)
            except UnknownKey:
                pass
        self._keys = await load_keys(self._client, metadata)
        try:
            return validate(token, self._keys, expected, now=now)
        except UnknownKey as error:
            raise IdentityRejected(f"the ID token is signed with an unknown key: {error}") from error

    async def _complete(self, metadata: Metadata, claims: dict[str, Any], token: object) -> dict[str, Any]:
        """Add claims that some providers return only at the userinfo endpoint."""
        wanted = {self._options.username_claim, self._options.groups_claim}
        if wanted <= claims.keys() or metadata.userinfo_endpoint is None or not isinstance(token, str):
            return claims
        more = await fetch_json(self._client, metadata.userinfo_endpoint, token)
        if more.get("sub") != claims["sub"]:
            raise IdentityRejected("the userinfo endpoint describes another person")
        return more | claims


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _text(claim: object) -> str | None:
    return claim if isinstance(claim, str) and claim else None


def _names(claim: object) -> frozenset[str]:
    """Read a list of names; some providers send a single name as plain text."""
    if isinstance(claim, str):
        return frozenset({claim})
    return (
        frozenset(each for each in claim if isinstance(each, str)) if isinstance(claim, list) else frozenset()
    )
