"""The forms of the proxy's pages: their tokens, their fields, and where they lead."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qs

from codehub.domain.conditions import WorkspaceId
from proxy.request_kind import INTERNAL_PATHS, parse_path, parse_port_path
from proxy.transport.request_head import TARGET

FORM_TYPE = b"application/x-www-form-urlencoded"
MAX_FORM_BYTES = 16 * 1024
MAX_FIELDS = 16
_LABEL = b"codehub form\0"


def form_token_of(session_secret: str, workspace_id: WorkspaceId) -> str:
    """Derive a token that is valid only for this workspace and session, so none must be stored."""
    digest = hashlib.sha256(_LABEL + f"{session_secret}\0{workspace_id}".encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def is_form_token(sent: str, session_secret: str | None, workspace_id: WorkspaceId) -> bool:
    if session_secret is None:
        return False
    expected = form_token_of(session_secret, workspace_id)
    return hmac.compare_digest(sent.encode(errors="replace"), expected.encode())


def read_form(encoded: bytes) -> Mapping[str, str] | None:
    """Return the first values of a form's or query's fields, or None if it is malformed."""
    try:
        parsed = parse_qs(encoded.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    return {name: values[0] for name, values in parsed.items()}


def return_path(wanted: str, workspace_id: WorkspaceId) -> str:
    """Return the wanted path if it is a workspace's page; never another site or an internal path."""
    target = wanted.encode("latin-1", errors="replace")
    path = (parse_path(target) or parse_port_path(target)) if TARGET.fullmatch(target) else None
    if path is None or path.rest.startswith(INTERNAL_PATHS):
        return f"/w/{workspace_id}/"
    return wanted
