"""PostgreSQL refuses to run as root; then it gets a user of its own, who can reach its files."""

import os
import pwd
import stat
import subprocess
from pathlib import Path

from codehub.embedded.children import CannotPrepare

USER = "pgserver"


def unprivileged_user() -> str | None:
    """The name of the user to run as; None if it is the one that we are."""
    return USER if os.geteuid() == 0 else None


def reachable_for(user: str, *paths: Path) -> None:
    """Make the user if need be, and let it pass (not read) the directories above these paths."""
    _ensure_exists(user)
    for path in paths:
        for directory in (path, *path.parents):
            mode = stat.S_IMODE(directory.stat().st_mode)
            if not mode & stat.S_IXOTH:
                directory.chmod(mode | stat.S_IXOTH)


def _ensure_exists(user: str) -> None:
    try:
        pwd.getpwnam(user)
    except KeyError:
        _create(user)


def _create(user: str) -> None:
    command = ("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false", user)
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 (fixed words only)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotPrepare(
            f"PostgreSQL does not run as root, and the user {user} for it cannot be made; "
            f"make it (useradd --system {user}), or run as another user."
        ) from error
