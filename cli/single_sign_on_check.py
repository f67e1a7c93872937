"""`codehub doctor`: whether the identity provider is reachable and matches the settings."""

import asyncio
from collections.abc import Iterator

from api.security.access import CALLBACK
from cli.machine_checks import Finding
from codehub.bootstrap import open_identity_provider
from codehub.ports import ProviderUnavailable
from codehub.settings import Settings

NAME = "single sign-on"
REMEDY = "check CODEHUB_OIDC_ISSUER; the provider must serve its discovery document there"


def single_sign_on_findings(settings: Settings) -> Iterator[Finding]:
    """Yield nothing without a provider. CodeHub can start while the provider is down."""
    if settings.oidc.issuer is not None:
        yield asyncio.run(_check(settings))


async def _check(settings: Settings) -> Finding:
    async with open_identity_provider(settings, CALLBACK) as provider:
        assert provider is not None  # noqa: S101 (the issuer is set, and settings check the rest)
        try:
            issuer = await provider.check()
        except ProviderUnavailable as error:
            return Finding(NAME, False, str(error), REMEDY, required=False)
    detail = f"{issuer} sends people back to {settings.public_base_url}{CALLBACK}"
    return Finding(NAME, True, detail, required=False)
