"""Checks that the settings of origins fit together."""

from urllib.parse import urlsplit

from codehub.origins import LOOPBACK
from codehub.settings.settings import Settings

DOMAIN = "CODEHUB_WORKSPACES_DOMAIN"
ORIGINS = "CODEHUB_WORKSPACES_ORIGINS"


def origins_problem(settings: Settings) -> str | None:
    """Return a sentence that says why workspaces cannot have their own origins, or None."""
    domain, mode = settings.workspaces.domain, settings.workspaces.origins
    if mode != "subdomain" and domain:
        return f"{DOMAIN}={domain}: must be unset when {ORIGINS} is {mode}"
    if mode == "port":
        return _port_problem(settings)
    if mode == "path":
        return None
    parts = urlsplit(settings.public_base_url)
    host = parts.hostname or ""
    if domain is None:
        return None if host in LOOPBACK else _needs_domain(settings)
    if _is_within(host, domain) or _is_within(domain, host):
        return (
            f"{DOMAIN}={domain}: must be neither {host}, nor above or below it, because a workspace could "
            "then set cookies for CodeHub; use a domain that you registered only for workspaces"
        )
    return None


def _port_problem(settings: Settings) -> str | None:
    ports = settings.origins.ports
    public = urlsplit(settings.public_base_url).port
    taken = {settings.proxy.port, settings.api.port, settings.proxy.metrics_port, public} & set(ports)
    if not taken:
        return None
    return (
        f"CODEHUB_WORKSPACES_PORTS={settings.workspaces.ports}: must not contain port "
        f"{min(filter(None, taken))}, which CodeHub uses itself"
    )


def _needs_domain(settings: Settings) -> str:
    return (
        f"{DOMAIN} is not set: workspaces of {settings.public_base_url} need a domain for origins of their "
        f"own, with a wildcard DNS record; {ORIGINS} says what else there is"
    )


def _is_within(name: str, domain: str) -> bool:
    return name == domain or name.endswith(f".{domain}")
