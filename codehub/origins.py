"""Which origins are ours, and what our cookie is called there: the API and the proxy must agree."""

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# Typed in by a person, or made by a page of this very origin.
OWN_SITES = frozenset({"none", "same-origin"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
PLAIN_COOKIE = "codehub_session"
# The prefix makes browsers insist on Secure, on this host alone and on all of its paths.
HOST_COOKIE = "__Host-codehub_session"


@dataclass(frozen=True)
class Origins:
    """Which origins are ours: the public one, and loopback for whoever asks a process directly."""

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
    """None for what is no URL, which no browser sends."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def session_cookie_name(public_base_url: str) -> str:
    return HOST_COOKIE if public_base_url.startswith("https://") else PLAIN_COOKIE
