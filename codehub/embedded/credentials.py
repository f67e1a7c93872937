"""Passwords and keys of the embedded servers: made once, kept in a file that only its owner can read."""

import json
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

from codehub.embedded.data_dir import write_private


class CredentialsDamaged(Exception):
    """The file is there but cannot be used; new credentials would not open the existing servers' data."""


def _new_secret() -> str:
    return secrets.token_hex(24)


@dataclass(frozen=True)
class Credentials:
    """None of them is ever on a command line or in a log."""

    database_password: str = field(repr=False, default_factory=_new_secret)
    redis_password: str = field(repr=False, default_factory=_new_secret)
    s3_access_key: str = field(repr=False, default_factory=_new_secret)
    s3_secret_key: str = field(repr=False, default_factory=_new_secret)
    s3_signing_key: str = field(repr=False, default_factory=_new_secret)


def load_or_create(path: Path) -> Credentials:
    try:
        text = path.read_text()
    except FileNotFoundError:
        credentials = Credentials()
        write_private(path, json.dumps(asdict(credentials), indent=2))
        return credentials
    try:
        return Credentials(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise CredentialsDamaged(
            f"{path} is damaged. It holds the passwords of the embedded servers: bring it back from a backup."
        ) from error
