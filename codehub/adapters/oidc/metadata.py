"""Reads a provider's discovery document and key set."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, import_key

from codehub.ports import ProviderUnavailable

log = logging.getLogger(__name__)

DISCOVERY = "/.well-known/openid-configuration"
SUCCESS = 200
POST_SECRET = "client_secret_post"  # noqa: S105 (the name of a method)


@dataclass(frozen=True)
class Metadata:
    """The endpoints that a sign-in needs."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    # Whether the secret goes into the request body instead of the Authorization header.
    posts_secret: bool


async def load_metadata(client: httpx.AsyncClient, issuer: str) -> Metadata:
    """Read the discovery document; it must name this issuer and equally secure endpoints."""
    document = await fetch_json(client, issuer.rstrip("/") + DISCOVERY)
    if document.get("issuer") != issuer:
        raise ProviderUnavailable(f"its discovery document is about {document.get('issuer')!r}")
    methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return Metadata(
        issuer=issuer,
        authorization_endpoint=_endpoint(document, "authorization_endpoint", issuer),
        token_endpoint=_endpoint(document, "token_endpoint", issuer),
        jwks_uri=_endpoint(document, "jwks_uri", issuer),
        userinfo_endpoint=(
            _endpoint(document, "userinfo_endpoint", issuer) if document.get("userinfo_endpoint") else None
        ),
        posts_secret="client_secret_basic" not in methods and POST_SECRET in methods,
    )


async def load_keys(client: httpx.AsyncClient, metadata: Metadata) -> KeySet:
    document = await fetch_json(client, metadata.jwks_uri)
    keys = []
    for each in document.get("keys") or []:
        try:
            keys.append(import_key(each))
        except (JoseError, ValueError, TypeError, KeyError) as error:
            # A provider may publish key types that this library does not know.
            log.info("skipped a key of the identity provider: %s", error)
    return KeySet(keys)


async def fetch_json(client: httpx.AsyncClient, url: str, token: str | None = None) -> dict[str, Any]:
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        response = await client.get(url, headers=headers)
        document = response.json() if response.status_code == SUCCESS else None
    except (httpx.HTTPError, ValueError) as error:
        raise ProviderUnavailable(f"{url}: {error or type(error).__name__}") from error
    if not isinstance(document, dict):
        raise ProviderUnavailable(f"{url} responded with status {response.status_code} and no JSON object")
    return document


def _endpoint(document: Mapping[str, Any], name: str, issuer: str) -> str:
    url = document.get(name)
    parts = urlsplit(url) if isinstance(url, str) else None
    # An issuer without https is for tests on this machine; only then may endpoints lack https.
    schemes = {"https", urlsplit(issuer).scheme}
    if not isinstance(url, str) or parts is None or parts.scheme not in schemes or not parts.hostname:
        raise ProviderUnavailable(f"its discovery document has no usable {name}")
    return url
