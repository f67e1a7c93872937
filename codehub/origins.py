"""CodeHub's own origins and the name of its cookie; the API and the proxy share them."""

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# Requests by the address bar, and by pages of the same origin.
OWN_SITES = frozenset({"none", "same-origin"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
PLAIN_COOKIE = "codehub_session"
# The prefix makes browsers require Secure, this host and all paths.
HOST_COOKIE = "__Host-codehub_session"


@dataclass(frozen=True)
class Origins:
    """CodeHub's own origins: the public one, and loopback for direct requests to a process."""

    public: str

    def is_own_origin(self, origin: str, host: str) -> bool:
        if origin == self.public:
            return True
        parts = split_url(origin)
        return parts is not None and parts.netloc == host and parts.hostname in LOOPBACK


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def split_url(url: str) -> SplitResult | None:
    """Split a URL; return None if it is not one."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def session_cookie_name(public_base_url: str) -> str:
    return HOST_COOKIE if public_base_url.startswith("https://") else PLAIN_COOKIE
