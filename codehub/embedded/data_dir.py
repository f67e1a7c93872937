"""The data directory: its paths, private files and credentials."""

import json
import os
import secrets
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PRIVATE_DIRECTORY = 0o700


@dataclass(frozen=True)
class DataDir:
    """The paths of one installation, all below the absolute path `root`."""

    root: Path

    @property
    def lock(self) -> Path:
        return self.root / "up.lock"

    @property
    def ports(self) -> Path:
        return self.root / "stack.json"

    @property
    def credentials(self) -> Path:
        return self.root / "credentials.json"

    @property
    def egress_key(self) -> Path:
        return self.root / "egress.key"

    @property
    def backend(self) -> Path:
        return self.root / "backend.json"

    @property
    def local_homes(self) -> Path:
        return self.root / "local"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def state(self) -> Path:
        return self.run / "state.json"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def ready_file(self, name: str) -> Path:
        return self.run / f"{name}.ready"

    def server_directory(self, name: str) -> Path:
        """Return the directory of a server; create it if necessary."""
        return make_private_directory(self.root / name)

    def create(self) -> None:
        for directory in (self.root, self.logs, self.run):
            make_private_directory(directory)


def make_private_directory(path: Path) -> Path:
    path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    return path


def write_private(path: Path, text: str) -> None:
    """Replace the file atomically. Only its owner can read it."""
    # mkstemp creates the file with mode 0600.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(temporary).replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """Return the content of the file, or an empty dict if it is missing or damaged."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def load_or_create_secret(path: Path) -> str:
    """Return the secret in the file; generate it on first use."""
    if not path.exists():
        write_private(path, _new_secret())
    return path.read_text().strip()


class DamagedCredentials(Exception):
    """The file cannot be read. New credentials would not open the data of the servers."""


def _new_secret() -> str:
    return secrets.token_hex(24)


@dataclass(frozen=True)
class Credentials:
    """The passwords and keys of the embedded servers. They never appear on a command line or in a log."""

    database_password: str = field(repr=False, default_factory=_new_secret)
    redis_password: str = field(repr=False, default_factory=_new_secret)
    s3_access_key: str = field(repr=False, default_factory=_new_secret)
    s3_secret_key: str = field(repr=False, default_factory=_new_secret)
    s3_signing_key: str = field(repr=False, default_factory=_new_secret)


def load_or_create_credentials(path: Path) -> Credentials:
    try:
        text = path.read_text()
    except FileNotFoundError:
        credentials = Credentials()
        write_private(path, json.dumps(asdict(credentials), indent=2))
        return credentials
    try:
        return Credentials(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise DamagedCredentials(
            f"{path} is damaged. It holds the passwords of the embedded servers; restore it from a backup."
        ) from error
