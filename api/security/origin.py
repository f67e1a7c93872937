"""Where a request comes from, by what browsers say of it: pure, on headers alone.

A browser sends our cookie along with requests that other pages make. These rules decide whether the cookie
speaks for its user. What a workspace's own page can still do is told in docs/security.md.
"""

from collections.abc import Mapping
from urllib.parse import unquote

from codehub.origins import OWN_SITES, SAFE_METHODS, Origins, split_url

WORKSPACE_PATHS = "/w/"


def cookie_may_speak(method: str, headers: Mapping[str, str], origins: Origins) -> bool:
    """Whether a session cookie on this request stands for its user."""
    host = headers.get("host", "")
    site = headers.get("sec-fetch-site")
    if site is not None and site not in OWN_SITES:
        return False
    origin = headers.get("origin")
    if origin is not None and not origins.is_own_origin(origin, host):
        return False
    if _comes_from_workspace(headers):
        return False
    return method in SAFE_METHODS or _is_program_or_our_page(headers, origins, host)


def _comes_from_workspace(headers: Mapping[str, str]) -> bool:
    referer = headers.get("referer")
    if referer:
        parts = split_url(referer)
        return parts is None or _plain_path(parts.path).startswith(WORKSPACE_PATHS)
    # Our own pages always say where they are; a page of this origin that hides it may be a workspace's.
    navigates = headers.get("sec-fetch-mode") == "navigate"
    return headers.get("sec-fetch-site") == "same-origin" and not navigates


def _plain_path(path: str) -> str:
    """As servers read it: a page that was opened as `/%77/...` or `//w/...` may be a workspace's too."""
    return "/" + unquote(path).lstrip("/")


def _is_program_or_our_page(headers: Mapping[str, str], origins: Origins, host: str) -> bool:
    """A browser names the origin of every change; without one it is a program, which has no bystanders."""
    origin = headers.get("origin")
    if origin is not None:
        return origins.is_own_origin(origin, host)
    return "sec-fetch-site" not in headers
