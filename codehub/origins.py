"""The origins of CodeHub and its workspaces, and the names of its cookies; see ADR 0037."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from urllib.parse import SplitResult, urlsplit

from codehub.domain.conditions import WorkspaceId

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# Browsers resolve every name below it to loopback, and treat each as a separate site.
LOOPBACK_DOMAIN = "localhost"
# Requests by the address bar, and by pages of the same origin.
OWN_SITES = frozenset({"none", "same-origin"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
PLAIN_COOKIE = "codehub_session"
WORKSPACE_COOKIE = "codehub_workspace"
# The prefix makes browsers require Secure, this host and all paths.
HOST_PREFIX = "__Host-"
HOST_COOKIE = HOST_PREFIX + PLAIN_COOKIE
# Set during a sign-in through an identity provider.
SIGN_IN_COOKIE = "codehub_oidc"
# Marks a browser that has signed in before; it does not sign in.
DEVICE_COOKIE = "codehub_device"
# IDEs can neither see nor set cookies whose names start like this.
RESERVED_COOKIES = ("codehub_", f"{HOST_PREFIX}codehub_")


# The risk of path mode, for logs and people.
SHARED_ORIGIN = "any page in a workspace can act as the user who opens it"


class OriginMode(StrEnum):
    """How browsers keep a workspace's pages apart from CodeHub and from other workspaces."""

    SUBDOMAIN = "subdomain"
    # Only the port differs, so origins share the host's cookies.
    PORT = "port"
    # Not at all: every workspace is below a path of CodeHub's origin.
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
        """Return the part of the host after the workspace's id."""
        port = urlsplit(self.public_url).port
        return f".{self.domain}:{port}" if port else f".{self.domain}"

    @property
    def form_targets(self) -> str:
        """Return the origins that a form on the main origin may redirect to, for the page's policy."""
        if self.mode is OriginMode.PORT:
            return f"{self.scheme}://{self.host}:*"
        return f"{self.scheme}://*{self.suffix}" if self.are_separate else ""

    @cached_property
    def names_site(self) -> bool:
        """Whether browsers say with Sec-Fetch-Site where a request comes from: on https, and to loopback."""
        return self.scheme == "https" or urlsplit(self.public_url).hostname in LOOPBACK

    @property
    def ide_base_path(self) -> str:
        """Return the base path of IDEs for browsers; `{id}` stands for the workspace's id."""
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
        """Return the cookie's name on this host; in port mode it contains the port."""
        port = host.rpartition(":")[2]
        return f"{self.workspace_cookie}_{port}" if self.mode is OriginMode.PORT else self.workspace_cookie

    @property
    def pattern(self) -> str:
        """Return the pattern of workspaces' URLs, for people."""
        if self.mode is OriginMode.PORT:
            return f"{self.scheme}://{self.host}:{self.ports[0]}/ to {self.ports[-1]}"
        return self.url_of(WorkspaceId("{id}"))

    def is_main(self, origin: str) -> bool:
        return origin == self.main

    def origin_of(self, workspace_id: WorkspaceId, number: int | None = None) -> str | None:
        """Return the workspace's origin; None if it has no number yet, or no port is left."""
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
        """Return the origin of a port inside the workspace; None if ports have no origins here."""
        return f"{self.scheme}://{port}--{workspace_id}{self.suffix}" if self.has_ports else None

    def url_of(self, workspace_id: WorkspaceId, number: int | None = None) -> str:
        """Return where to open the workspace: its own origin, or a URL that redirects there."""
        own = self.origin_of(workspace_id, number) if self.are_separate else None
        return f"{own}/" if own else self.entrance_of(workspace_id)

    def port_of(self, number: int | None) -> int | None:
        """Return the port of the workspace with this number, which starts at 1."""
        return self.ports[number - 1] if number and number <= len(self.ports) else None

    def entrance_of(self, workspace_id: WorkspaceId, port: int | None = None) -> str:
        """Return the URL on the main origin that redirects to the workspace or to its port."""
        path = f"/w/{workspace_id}/" if port is None else f"/p/{workspace_id}/{port}/"
        return self.public_url + path

    @property
    def _prefix(self) -> str:
        return HOST_PREFIX if self.scheme == "https" else ""


def origins_warning(origins: Origins) -> str | None:
    """Return a warning if these origins are unsafe, or None."""
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
