"""The sign-in that `codehub login` leaves for later commands, in a file that only its owner can read."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from codehub.embedded.data_dir import make_private_directory, read_json, write_private


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
