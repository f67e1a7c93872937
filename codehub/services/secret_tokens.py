"""What sessions and API tokens are made of: 256 bits that cannot be guessed, kept only as a hash."""

import hashlib
import secrets

SECRET_BYTES = 32
# Scanners for leaked secrets recognise it, and so do people.
API_TOKEN_PREFIX = "codehub_pat_"  # noqa: S105


def new_session_token() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


def new_api_token() -> str:
    return API_TOKEN_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def hash_token(token: str) -> bytes:
    """Fast and without salt, which is for passwords: nobody can guess 256 bits, and an index finds it."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
