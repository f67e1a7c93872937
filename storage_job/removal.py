"""Remove a tree whatever its permissions: read-only directories are ordinary in homes."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove what is there, be it a directory, a file or nothing; a symlink is removed, never followed."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, onerror=_make_writable_and_retry)


def _make_writable_and_retry(function: Callable[..., object], path: str, _error: object) -> None:
    place = Path(path)
    if function in (os.unlink, os.rmdir):
        _allow(place.parent)
        place.unlink() if function is os.unlink else place.rmdir()
    else:
        # Opening or listing a directory failed.
        _allow(place)
        shutil.rmtree(place)


def _allow(directory: Path) -> None:
    directory.chmod(stat.S_IMODE(directory.stat().st_mode) | stat.S_IRWXU)
