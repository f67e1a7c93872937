"""The CodeHub that commands talk to, and the saved login for it."""

import json
import os
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from cli.errors import CommandError, ExitCode
from codehub.embedded.data_dir import DataDir, make_private_directory, read_json, write_private

DEFAULT_URL = "http://localhost:8080"
API = "/api/v1"


@dataclass(frozen=True)
class Address:
    """A base URL and where it comes from."""

    url: str
    source: str

    @property
    def is_local(self) -> bool:
        """Return whether requests stay on this machine."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def is_encrypted(self) -> bool:
        return self.url.startswith("https://")


@dataclass(frozen=True)
class SavedLogin:
    """A personal token, which is sent only to the CodeHub that issued it."""

    url: str
    username: str
    token: str
    token_id: str


def find_address(given: str | None) -> Address:
    """Use the option, CODEHUB_URL, the saved login, `codehub up` on this machine, or the default."""
    if given:
        return Address(_normalize_url(given), "--url")
    if variable := os.environ.get("CODEHUB_URL"):
        return Address(_normalize_url(variable), "CODEHUB_URL")
    if login := load_login():
        return Address(login.url, "codehub login")
    return _local_address() or Address(DEFAULT_URL, "the default")


def _local_address() -> Address | None:
    # Imported here because these modules load slowly, and most commands do not need them.
    from codehub.embedded.state import read_running_stack  # noqa: PLC0415
    from codehub.settings import load_settings  # noqa: PLC0415

    running = read_running_stack(DataDir(load_settings().general.data_dir.absolute()))
    url = running.urls.get("CodeHub") if running else None
    return Address(url, "codehub status") if url else None


def _normalize_url(text: str) -> str:
    """Remove a trailing slash and the API path, so that URLs can be compared."""
    url = text.strip().rstrip("/").removesuffix(API).rstrip("/")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or True)
    except ValueError:
        valid = False
    if not valid:
        raise CommandError(f"Invalid URL: {text!r}.", f"Example: {DEFAULT_URL}", code=ExitCode.USAGE)
    return url


def login_file() -> Path:
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The XDG specification says to ignore relative paths.
    home = configured if configured.is_absolute() else Path.home() / ".config"
    return home / "codehub" / "login.json"


def load_login() -> SavedLogin | None:
    content = read_json(login_file())
    try:
        return SavedLogin(**content)
    except TypeError:
        return None


def save_login(login: SavedLogin) -> None:
    """Save the login in a file that only its owner can read."""
    file = login_file()
    make_private_directory(file.parent)
    write_private(file, json.dumps(asdict(login), indent=2))


def delete_login() -> None:
    login_file().unlink(missing_ok=True)
