"""Protects session cookies against requests from other pages: CSRF tokens, and rules on browser headers.

Browsers attach our cookie to requests of other pages too, such as those of workspaces on the same site; see
ADR 0038.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import unquote

from codehub.origins import OWN_SITES, SAFE_METHODS, Origins, split_url

CSRF_HEADER = "X-CSRF-Token"
WORKSPACE_PATHS = "/w/"
_LABEL = b"codehub csrf\0"


def csrf_token_of(session_token: str) -> str:
    """Derive the token from the session, so that it need not be stored; it does not reveal the cookie."""
    digest = hashlib.sha256(_LABEL + session_token.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def is_csrf_token(sent: str | None, session_token: str) -> bool:
    return sent is not None and hmac.compare_digest(sent.encode(), csrf_token_of(session_token).encode())


def is_cookie_trusted(method: str, headers: Mapping[str, str], origins: Origins) -> bool:
    """Return whether a session cookie authenticates this request: it must not come from another page."""
    site = headers.get("sec-fetch-site")
    if site is not None and site not in OWN_SITES:
        return False
    origin = headers.get("origin")
    if origin is not None and not origins.is_main(origin):
        return False
    if _comes_from_workspace(headers):
        return False
    # Browsers send Origin with every change; a request without it comes from a program.
    return method in SAFE_METHODS or origin is not None or site is None


def is_own_page(headers: Mapping[str, str], origins: Origins) -> bool:
    """Return whether the browser says that one of our pages, or the address bar, made this request.

    Over http, browsers say so only to loopback. Elsewhere the Referer must be ours, which no other origin can
    forge.
    """
    if headers.get("sec-fetch-site") in OWN_SITES:
        return True
    parts = split_url(headers.get("referer", ""))
    return parts is not None and origins.is_main(f"{parts.scheme}://{parts.netloc}")


def _comes_from_workspace(headers: Mapping[str, str]) -> bool:
    referer = headers.get("referer")
    if referer:
        parts = split_url(referer)
        return parts is None or _normalize_path(parts.path).startswith(WORKSPACE_PATHS)
    # Our own pages always send a Referer; a page of this origin that hides it may be a workspace's.
    navigates = headers.get("sec-fetch-mode") == "navigate"
    return headers.get("sec-fetch-site") == "same-origin" and not navigates


def _normalize_path(path: str) -> str:
    """Read the path as servers do: `/%77/...` and `//w/...` may be a workspace's too."""
    return "/" + unquote(path).lstrip("/")
