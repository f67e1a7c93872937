"""Which CodeHub a command talks to."""

import json
import os
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from cli.errors import ExitCode, Failed
from codehub.embedded.data_dir import make_private_directory, read_json, write_private

DEFAULT_URL = "http://127.0.0.1:8080"
API = "/api/v1"


@dataclass(frozen=True)
class Address:
    """The base URL, and who says so."""

    url: str
    source: str

    @property
    def is_here(self) -> bool:
        """Whether what is sent there never leaves this machine."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def is_encrypted(self) -> bool:
        return self.url.startswith("https://")


def find_address(given: str | None) -> Address:
    """The option, the environment, the last sign-in, the `codehub up` of this directory, or the default."""
    if given:
        return Address(_checked(given), "--url")
    if variable := os.environ.get("CODEHUB_URL"):
        return Address(_checked(variable), "CODEHUB_URL")
    if login := load_login():
        return Address(login.url, "codehub login")
    return _of_this_machine() or Address(DEFAULT_URL, "the default")


def _of_this_machine() -> Address | None:
    # Here, because it takes longer to load than most commands take.
    from codehub.embedded.data_dir import DataDir  # noqa: PLC0415
    from codehub.embedded.state import read_running_stack  # noqa: PLC0415
    from codehub.settings import load_settings  # noqa: PLC0415

    running = read_running_stack(DataDir(load_settings().general.data_dir.absolute()))
    url = running.urls.get("CodeHub") if running else None
    return Address(url, "codehub status") if url else None


def _checked(text: str) -> str:
    """As it is saved and compared: without a slash at the end, nor the path of the API."""
    url = text.strip().rstrip("/").removesuffix(API).rstrip("/")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or True)
    except ValueError:
        valid = False
    if not valid:
        example = f"Write it as in {DEFAULT_URL}"
        raise Failed(f"{text!r} is no address of a CodeHub.", example, code=ExitCode.USAGE)
    return url


@dataclass(frozen=True)
class SavedLogin:
    """A personal token, and the CodeHub that it is for: it is sent to no other."""

    url: str
    username: str
    token: str
    token_id: str


def saved_login_file() -> Path:
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The specification of that variable says that a relative path is none.
    home = configured if configured.is_absolute() else Path.home() / ".config"
    return home / "codehub" / "login.json"


def load_login() -> SavedLogin | None:
    content = read_json(saved_login_file())
    try:
        return SavedLogin(**content)
    except TypeError:
        return None


def save_login(login: SavedLogin) -> None:
    file = saved_login_file()
    make_private_directory(file.parent)
    write_private(file, json.dumps(asdict(login), indent=2))


def forget_login() -> None:
    saved_login_file().unlink(missing_ok=True)
