"""The origins of CodeHub and its workspaces, and the names of its cookies; see ADR 0037."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from urllib.parse import SplitResult, urlsplit

from codehub.domain.conditions import WorkspaceId

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# Browsers resolve every name below it to loopback, and keep the names apart like registered domains.
LOOPBACK_DOMAIN = "localhost"
# Requests by the address bar, and by pages of the same origin.
OWN_SITES = frozenset({"none", "same-origin"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
PLAIN_COOKIE = "codehub_session"
WORKSPACE_COOKIE = "codehub_workspace"
# The prefix makes browsers require Secure, this host and all paths.
HOST_PREFIX = "__Host-"
HOST_COOKIE = HOST_PREFIX + PLAIN_COOKIE
# During a sign-in through an identity provider.
SIGN_IN_COOKIE = "codehub_oidc"
# A browser that has signed in before; it signs nobody in.
DEVICE_COOKIE = "codehub_device"
# An IDE neither sees nor sets a cookie whose name starts like this.
RESERVED_COOKIES = ("codehub_", f"{HOST_PREFIX}codehub_")


# What path mode gives up, for logs and people.
SHARED_ORIGIN = "any page in a workspace can act as the user who opens it"


class OriginMode(StrEnum):
    """What keeps the pages of a workspace apart from CodeHub's and from other workspaces'."""

    SUBDOMAIN = "subdomain"
    # Only the port differs, so the host's cookies are shared.
    PORT = "port"
    # Nothing: every workspace is below a path of CodeHub's own origin.
    PATH = "path"


@dataclass(frozen=True)
class Origins:
    """Where browsers find CodeHub and its workspaces."""

    public_url: str
    mode: OriginMode = OriginMode.SUBDOMAIN
    domain: str = LOOPBACK_DOMAIN
    ports: range = range(0)

    @cached_property
    def main(self) -> str:
        """The origin of the dashboard and the API."""
        return origin_of(self.public_url)

    @property
    def are_separate(self) -> bool:
        return self.mode is not OriginMode.PATH

    @property
    def scheme(self) -> str:
        return urlsplit(self.public_url).scheme

    @cached_property
    def host(self) -> str:
        """The host of the main origin, without its port."""
        name = urlsplit(self.public_url).hostname or ""
        return f"[{name}]" if ":" in name else name

    @cached_property
    def suffix(self) -> str:
        """What follows the workspace's id in the host of its origin."""
        port = urlsplit(self.public_url).port
        return f".{self.domain}:{port}" if port else f".{self.domain}"

    @property
    def form_targets(self) -> str:
        """The origins that a form on the main origin can lead to, for a Content-Security-Policy."""
        if self.mode is OriginMode.PORT:
            return f"{self.scheme}://{self.host}:*"
        return f"{self.scheme}://*{self.suffix}" if self.are_separate else ""

    @cached_property
    def names_site(self) -> bool:
        """Whether browsers say with Sec-Fetch-Site where a request comes from: on https, and to loopback."""
        return self.scheme == "https" or urlsplit(self.public_url).hostname in LOOPBACK

    @property
    def ide_base_path(self) -> str:
        """The path below which browsers see an IDE; `{id}` stands for the workspace's."""
        return "/" if self.are_separate else "/w/{id}/"

    @property
    def session_cookie(self) -> str:
        return self._prefix + PLAIN_COOKIE

    @property
    def sign_in_cookie(self) -> str:
        return self._prefix + SIGN_IN_COOKIE

    @property
    def device_cookie(self) -> str:
        return self._prefix + DEVICE_COOKIE

    @property
    def workspace_cookie(self) -> str:
        return self._prefix + WORKSPACE_COOKIE

    def workspace_cookie_at(self, host: str) -> str:
        """Return the name of the cookie on the workspace's host; ports of one host share their cookies."""
        port = host.rpartition(":")[2]
        return f"{self.workspace_cookie}_{port}" if self.mode is OriginMode.PORT else self.workspace_cookie

    @property
    def pattern(self) -> str:
        """The URL of any workspace, for people."""
        if self.mode is OriginMode.PORT:
            return f"{self.scheme}://{self.host}:{self.ports[0]}/ to {self.ports[-1]}"
        return self.url_of(WorkspaceId("{id}"))

    def is_main(self, origin: str) -> bool:
        return origin == self.main

    def origin_of(self, workspace_id: WorkspaceId, number: int | None = None) -> str | None:
        """Return the origin; None if the workspace has no number yet, or there is no port for it."""
        match self.mode:
            case OriginMode.SUBDOMAIN:
                return f"{self.scheme}://{workspace_id}{self.suffix}"
            case OriginMode.PORT:
                port = self.port_of(number)
                return f"{self.scheme}://{self.host}:{port}" if port else None
        return self.main

    @property
    def has_ports(self) -> bool:
        """Whether the ports of a workspace have origins of their own."""
        return self.mode is OriginMode.SUBDOMAIN

    def port_origin_of(self, workspace_id: WorkspaceId, port: int) -> str | None:
        """Return the origin of a port inside the workspace; None if ports have none here."""
        return f"{self.scheme}://{port}--{workspace_id}{self.suffix}" if self.has_ports else None

    def url_of(self, workspace_id: WorkspaceId, number: int | None = None) -> str:
        """Return where to open the workspace: its own origin, or what leads there."""
        own = self.origin_of(workspace_id, number) if self.are_separate else None
        return f"{own}/" if own else self.entrance_of(workspace_id)

    def port_of(self, number: int | None) -> int | None:
        """Return the port of the workspace with this number, counted from 1."""
        return self.ports[number - 1] if number and number <= len(self.ports) else None

    def entrance_of(self, workspace_id: WorkspaceId, port: int | None = None) -> str:
        """Return the address on the main origin, which leads to the workspace's own or to its port's."""
        path = f"/w/{workspace_id}/" if port is None else f"/p/{workspace_id}/{port}/"
        return self.public_url + path

    @property
    def _prefix(self) -> str:
        return HOST_PREFIX if self.scheme == "https" else ""


def origins_warning(origins: Origins) -> str | None:
    """Return what is unsafe about these origins, or None."""
    if origins.are_separate:
        return None
    return f"CODEHUB_WORKSPACES_ORIGINS is path, which is unsafe: {SHARED_ORIGIN}."


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def split_url(url: str) -> SplitResult | None:
    """Split a URL; return None if it is not one."""
    try:
        return urlsplit(url)
    except ValueError:
        return None
