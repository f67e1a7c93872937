"""Classifies requests by their heads: path, kind, credentials. Pure."""

from enum import StrEnum
from typing import NamedTuple

from codehub.domain.conditions import WorkspaceId
from codehub.origins import OWN_SITES, SAFE_METHODS, Origins
from codehub.services.credentials import API_TOKEN_PREFIX
from proxy.transport.forwarded_head import asks_for_websocket
from proxy.transport.header_fields import cookie_name
from proxy.transport.request_head import FieldBlock, RequestHead

WORKSPACE_PREFIX = b"/w/"
# Paths of a workspace that the proxy serves itself instead of forwarding them to the IDE.
INTERNAL_PATHS = b"/.codehub/"
ID_LENGTH = 36
ID_GROUPS = (8, 4, 4, 4, 12)
HEXADECIMAL = frozenset("0123456789abcdef")
# A program sets this to start a stopped workspace; see docs/api.md.
WAKE_FIELD = b"x-codehub-wake"
SAME_SITES = frozenset(site.encode() for site in OWN_SITES)
READING_METHODS = frozenset(method.encode() for method in SAFE_METHODS)
FETCH_FIELDS = (b"sec-fetch-mode", b"sec-fetch-dest", b"sec-fetch-site")


class RequestKind(StrEnum):
    """Who waits for the response: a person at a page, a program that waits, or neither."""

    NAVIGATION = "navigation"
    WAKING = "waking"
    BACKGROUND = "background"


# Faster than the attribute of the enum; see `Framing`.
BACKGROUND = RequestKind.BACKGROUND
KINDS = {kind.value: kind for kind in RequestKind}


class WorkspacePath(NamedTuple):
    """The parts of `/w/{id}{rest}{query}`; the query begins with its question mark."""

    workspace_id: WorkspaceId
    rest: bytes
    query: bytes


class Credentials(NamedTuple):
    """The credentials of a request; a token wins, because a browser never adds one by itself."""

    token: str | None
    session: str | None


def parse_path(target: bytes) -> WorkspacePath | None:
    """Return the parts of a path, or None if it names no workspace; only canonical ids count."""
    if not target.startswith(WORKSPACE_PREFIX):
        return None
    end = len(WORKSPACE_PREFIX) + ID_LENGTH
    workspace_id = target[len(WORKSPACE_PREFIX) : end].decode("latin-1")
    rest, mark, query = target[end:].partition(b"?")
    if not _is_id(workspace_id) or (rest and not rest.startswith(b"/")):
        return None
    return WorkspacePath(WorkspaceId(workspace_id), rest, mark + query)


def request_kind_of(head: RequestHead) -> RequestKind:
    """Return the kind of a request; only a navigation gets a page, and a prefetch is none."""
    if head.method != b"GET":
        return BACKGROUND if head.get(WAKE_FIELD) is None else RequestKind.WAKING
    block = head.block
    if block.kind is None:
        # Cached on the block of fields, which repeats.
        block.kind = _kind_of_get(head)
    return KINDS[block.kind]


def _kind_of_get(head: RequestHead) -> RequestKind:
    if head.get(WAKE_FIELD) is not None:
        return RequestKind.WAKING
    if asks_for_websocket(head) or head.get(b"sec-purpose") is not None:
        return RequestKind.BACKGROUND
    if any(head.get(name) is not None for name in FETCH_FIELDS):
        opens_page = head.get(b"sec-fetch-mode") == b"navigate"
        whole_window = head.get(b"sec-fetch-dest") in {None, b"document"}
        return RequestKind.NAVIGATION if opens_page and whole_window else RequestKind.BACKGROUND
    return RequestKind.NAVIGATION if b"text/html" in (head.get(b"accept") or b"") else RequestKind.BACKGROUND


def credentials_of(block: FieldBlock, cookie: bytes) -> Credentials:
    scheme, _, value = (block.known.get(b"authorization") or b"").partition(b" ")
    token = value.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""
    if token.startswith(API_TOKEN_PREFIX):
        return Credentials(token, None)
    return Credentials(None, _find_cookie(block.known.get(b"cookie") or b"", cookie))


def may_use_cookie(head: RequestHead, origins: Origins) -> bool:
    """Return whether the session cookie counts; requests from other sites may only open a page."""
    origin = head.origin
    if head.block.upgrade is not None and asks_for_websocket(head):
        # Browsers always send it here, and nothing else keeps pages of other sites out.
        return origin is not None and _is_same_origin(head, origin, origins)
    site = head.get(b"sec-fetch-site")
    if site is not None and site not in SAME_SITES:
        return request_kind_of(head) is RequestKind.NAVIGATION
    if head.method in READING_METHODS:
        return True
    return origin is None or _is_same_origin(head, origin, origins)


def _is_same_origin(head: RequestHead, origin: bytes, origins: Origins) -> bool:
    return origins.is_own_origin(origin.decode("latin-1"), (head.host or b"").decode("latin-1"))


def _is_id(text: str) -> bool:
    groups = text.split("-")
    return tuple(map(len, groups)) == ID_GROUPS and all(HEXADECIMAL.issuperset(each) for each in groups)


def _find_cookie(cookies: bytes, name: bytes) -> str | None:
    """Return the first cookie of this name."""
    for pair in cookies.split(b";"):
        if cookie_name(pair) == name.lower():
            return pair.partition(b"=")[2].strip(b" \t").decode("latin-1") or None
    return None
