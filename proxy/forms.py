"""The forms on the proxy's pages: who may send them, and where they lead to."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qs

from codehub.domain.conditions import WorkspaceId
from proxy.request_kind import OWN_PATHS, parse_path
from proxy.transport.request_head import TARGET

FORM_TYPE = b"application/x-www-form-urlencoded"
MAX_FORM_BYTES = 16 * 1024
MAX_FIELDS = 16
_LABEL = b"codehub form\0"


def form_token_of(session_secret: str, workspace_id: WorkspaceId) -> str:
    """Derived, so it needs no place to be kept; good for this workspace and session only."""
    digest = hashlib.sha256(_LABEL + f"{session_secret}\0{workspace_id}".encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def is_form_token(sent: str, session_secret: str | None, workspace_id: WorkspaceId) -> bool:
    if session_secret is None:
        return False
    expected = form_token_of(session_secret, workspace_id)
    return hmac.compare_digest(sent.encode(errors="replace"), expected.encode())


def read_form(encoded: bytes) -> Mapping[str, str] | None:
    """The fields of a form or a query with their first values; None if it is neither."""
    try:
        parsed = parse_qs(encoded.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    return {name: values[0] for name, values in parsed.items()}


def way_back(wanted: str, workspace_id: WorkspaceId) -> str:
    """Where the form's page was, if that is a workspace's page: never another site or a form's address."""
    target = wanted.encode("latin-1", errors="replace")
    path = parse_path(target) if TARGET.fullmatch(target) else None
    if path is None or path.rest.startswith(OWN_PATHS):
        return f"/w/{workspace_id}/"
    return wanted
