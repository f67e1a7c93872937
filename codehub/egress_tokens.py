"""Tokens that authenticate an instance to the egress gateway, and the line that carries them."""

import hashlib
import hmac

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import parse_workspace_id

GREETING = "CODEHUB-EGRESS/1"
# The purpose is part of the message, so that the key can serve other purposes too.
_PURPOSE = b"egress\0"


def make_token(key: str, workspace_id: WorkspaceId) -> str:
    return hmac.new(key.encode(), _PURPOSE + workspace_id.encode(), hashlib.sha256).hexdigest()


def make_preamble(key: str, workspace_id: WorkspaceId) -> str:
    """Return the first line of every connection to the gateway."""
    return f"{GREETING} {workspace_id} {make_token(key, workspace_id)}\n"


def read_preamble(key: str, line: str) -> WorkspaceId | None:
    """Return the workspace that the line authenticates, or None."""
    greeting, _, rest = line.removesuffix("\n").partition(" ")
    identifier, _, token = rest.partition(" ")
    try:
        workspace_id = parse_workspace_id(identifier)
    except ValueError:
        return None
    expected = make_token(key, workspace_id)
    matches = hmac.compare_digest(token.encode(), expected.encode())
    return workspace_id if matches and greeting == GREETING else None
