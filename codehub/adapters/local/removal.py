"""Remove trees whatever their permissions: read-only directories are ordinary in homes."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it; nothing there is fine."""
    try:
        shutil.rmtree(path, onerror=_make_writable_and_retry)
    except RecursionError:
        # Deeper than Python's stack; by now everything on the way down may be changed.
        command = ("rm", "-rf", "--", path)
        run = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 (a path of ours)
        if run.returncode != 0:
            raise OSError(run.stderr.strip()) from None


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
