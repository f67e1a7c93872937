"""Where a request comes from, by what browsers say of it: pure, on headers alone.

A browser sends our cookie along with requests that other pages make. These rules decide whether the cookie
speaks for its user. What a workspace's own page can still do is told in docs/security.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
WORKSPACE_PATHS = "/w/"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# Typed in by a person, or made by a page of this very origin.
OWN_SITES = frozenset({"none", "same-origin"})


@dataclass(frozen=True)
class Origins:
    """Which origins are ours: the public one, and loopback for whoever asks the API directly."""

    public: str

    def is_ours(self, origin: str, host: str) -> bool:
        if origin == self.public:
            return True
        parts = _split(origin)
        return parts is not None and parts.netloc == host and parts.hostname in LOOPBACK


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def cookie_may_speak(method: str, headers: Mapping[str, str], origins: Origins) -> bool:
    """Whether a session cookie on this request stands for its user."""
    host = headers.get("host", "")
    site = headers.get("sec-fetch-site")
    if site is not None and site not in OWN_SITES:
        return False
    origin = headers.get("origin")
    if origin is not None and not origins.is_ours(origin, host):
        return False
    if _comes_from_workspace(headers):
        return False
    return method in SAFE_METHODS or _is_program_or_our_page(headers, origins, host)


def _comes_from_workspace(headers: Mapping[str, str]) -> bool:
    referer = headers.get("referer")
    if referer:
        parts = _split(referer)
        return parts is None or _plain_path(parts.path).startswith(WORKSPACE_PATHS)
    # Our own pages always say where they are; a page of this origin that hides it may be a workspace's.
    navigates = headers.get("sec-fetch-mode") == "navigate"
    return headers.get("sec-fetch-site") == "same-origin" and not navigates


def _split(url: str) -> SplitResult | None:
    """None for what is no URL, which no browser sends."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _plain_path(path: str) -> str:
    """As servers read it: a page that was opened as `/%77/...` or `//w/...` may be a workspace's too."""
    return "/" + unquote(path).lstrip("/")


def _is_program_or_our_page(headers: Mapping[str, str], origins: Origins, host: str) -> bool:
    """A browser names the origin of every change; without one it is a program, which has no bystanders."""
    origin = headers.get("origin")
    if origin is not None:
        return origins.is_ours(origin, host)
    return "sec-fetch-site" not in headers
