"""Remove trees whatever their permissions: read-only directories are ordinary in homes."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it; nothing there is fine."""
    shutil.rmtree(path, onerror=_make_writable_and_retry)


def _make_writable_and_retry(function: Callable[..., object], path: str, error: object) -> None:
    if isinstance(error, tuple) and isinstance(error[1], FileNotFoundError):
        return
    place = Path(path)
    if function in (os.unlink, os.rmdir):
        _allow(place.parent)
        place.unlink(missing_ok=True) if function is os.unlink else place.rmdir()
    else:
        # Opening or listing a directory failed.
        _allow(place)
        shutil.rmtree(place)


def _allow(directory: Path) -> None:
    directory.chmod(stat.S_IMODE(directory.stat().st_mode) | stat.S_IRWXU)
