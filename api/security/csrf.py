"""The token that a page must send along with every change that its session cookie makes."""

import base64
import hashlib
import hmac

HEADER = "X-CSRF-Token"
_LABEL = b"codehub csrf\0"


def csrf_token_of(session_token: str) -> str:
    """Derived, so it needs no place to be kept; whoever knows it learns nothing of the cookie."""
    digest = hashlib.sha256(_LABEL + session_token.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def is_csrf_token(sent: str | None, session_token: str) -> bool:
    return sent is not None and hmac.compare_digest(sent.encode(), csrf_token_of(session_token).encode())
