"""Classifies requests by their heads: path, kind, credentials. Pure."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from codehub.cookies import find_cookie
from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import LAST_PORT
from codehub.origins import OWN_SITES, SAFE_METHODS
from codehub.services.credentials import API_TOKEN_PREFIX
from proxy.transport.forwarded_head import asks_for_websocket
from proxy.transport.request_head import FieldBlock, RequestHead

WORKSPACE_PREFIX = b"/w/"
# On the main origin, `/p/{id}/{port}/` redirects to a port of a workspace.
PORT_PREFIX = b"/p/"
ENTRANCES = (WORKSPACE_PREFIX, PORT_PREFIX)
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

# Returns whether an `Origin` is the origin that the request was sent to.
IsOwnOrigin = Callable[[RequestHead, bytes], bool]


class RequestKind(StrEnum):
    """Who waits for the response: a person at a page, a program that waits, or neither."""

    NAVIGATION = "navigation"
    WAKING = "waking"
    BACKGROUND = "background"


# Faster than the attribute of the enum; see `Framing`.
BACKGROUND = RequestKind.BACKGROUND
KINDS = {kind.value: kind for kind in RequestKind}


class WorkspacePath(NamedTuple):
    """A path of a workspace; the query begins with its question mark.

    The rest follows `/w/{id}` or `/p/{id}/{port}`, or is the whole path on an origin of the workspace.
    """

    workspace_id: WorkspaceId
    rest: bytes
    query: bytes
    # The port of a program in the workspace; None means the IDE.
    port: int | None = None

    @property
    def entrance(self) -> str:
        """Return the path on the main origin that redirects here, without the rest."""
        if self.port is None:
            return f"/w/{self.workspace_id}"
        return f"/p/{self.workspace_id}/{self.port}"


class WorkspacePort(NamedTuple):
    """A port of a workspace; its label is the first one in the host of its origin."""

    workspace_id: WorkspaceId
    port: int
    label: str


class Credentials(NamedTuple):
    """The credentials of a request; a token wins, because a browser never adds one by itself.

    The cookie is the session's on the main origin, and the workspace's on its own.
    """

    token: str | None
    session: str | None
    workspace: str | None = None


def parse_path(target: bytes) -> WorkspacePath | None:
    """Return the parts of a path, or None if it names no workspace; only canonical ids count."""
    if not target.startswith(WORKSPACE_PREFIX):
        return None
    end = len(WORKSPACE_PREFIX) + ID_LENGTH
    workspace_id = target[len(WORKSPACE_PREFIX) : end].decode("latin-1")
    rest, mark, query = target[end:].partition(b"?")
    if not is_workspace_id(workspace_id) or (rest and not rest.startswith(b"/")):
        return None
    return WorkspacePath(WorkspaceId(workspace_id), rest, mark + query)


def parse_port_path(target: bytes) -> WorkspacePath | None:
    """Return the parts of a path below `/p/{id}/{port}`, or None if it names no port."""
    if not target.startswith(PORT_PREFIX):
        return None
    path = parse_path(WORKSPACE_PREFIX + target.removeprefix(PORT_PREFIX))
    if path is None:
        return None
    number, slash, rest = path.rest[1:].partition(b"/")
    port = parse_port(number.decode("latin-1"))
    return path._replace(rest=slash + rest, port=port) if port is not None else None


def parse_port(text: str) -> int | None:
    """Return the port if it is in canonical form: to a browser, other spellings are other origins."""
    if not (text.isascii() and text.isdecimal()) or text.startswith("0"):
        return None
    return int(text) if len(text) <= len(str(LAST_PORT)) and int(text) <= LAST_PORT else None


def parse_label(label: str) -> WorkspaceId | WorkspacePort | None:
    """Parse the first label of a host: `{id}` is a workspace, `{port}--{id}` one of its ports."""
    if is_workspace_id(label):
        return WorkspaceId(label)
    number, _, workspace_id = label.partition("--")
    port = parse_port(number)
    if port is None or not is_workspace_id(workspace_id):
        return None
    return WorkspacePort(WorkspaceId(workspace_id), port, label)


def own_path(workspace_id: WorkspaceId, target: bytes, port: int | None = None) -> WorkspacePath:
    """Return the parts of a path on an origin of the workspace."""
    rest, mark, query = target.partition(b"?")
    return WorkspacePath(workspace_id, rest, mark + query, port)


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


def credentials_of(block: FieldBlock, cookie: bytes, *, of_workspace: bool = False) -> Credentials:
    scheme, _, value = (block.known.get(b"authorization") or b"").partition(b" ")
    token = value.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""
    if token.startswith(API_TOKEN_PREFIX):
        return Credentials(token, None)
    # Duplicates have been refused already.
    found = find_cookie((block.known.get(b"cookie") or b"").decode("latin-1"), cookie.decode())
    return Credentials(None, None, found) if of_workspace else Credentials(None, found)


def may_use_cookie(head: RequestHead, is_own_origin: IsOwnOrigin, *, names_site: bool = True) -> bool:
    """Return whether the cookie counts; with it, other origins may only open a page.

    Without `names_site`, browsers do not send Sec-Fetch-Site here.
    """
    origin = head.origin
    if head.block.upgrade is not None and asks_for_websocket(head):
        # Browsers always send it here, and nothing else keeps pages of other sites out.
        return origin is not None and is_own_origin(head, origin)
    if origin is not None and not is_own_origin(head, origin):
        return False
    site = head.get(b"sec-fetch-site")
    if site is None:
        # A script, a style or an image of another origin has no Origin. Changes always have one.
        is_known = names_site or origin is not None or head.method not in READING_METHODS
        return is_known or _comes_from_own_page(head, is_own_origin)
    return site in SAME_SITES or request_kind_of(head) is RequestKind.NAVIGATION


def _comes_from_own_page(head: RequestHead, is_own_origin: IsOwnOrigin) -> bool:
    """Return whether the Referer, which no other page can forge, is of this origin, or a person opens it."""
    origin = b"/".join((head.get(b"referer") or b"").split(b"/", 3)[:3])
    return is_own_origin(head, origin) or request_kind_of(head) is RequestKind.NAVIGATION


def is_workspace_id(text: str) -> bool:
    groups = text.split("-")
    return tuple(map(len, groups)) == ID_GROUPS and all(HEXADECIMAL.issuperset(each) for each in groups)
