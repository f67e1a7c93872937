"""The game day's IDE on this machine, under the name of code-server."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from codehub.adapters.local.sandbox import bubblewrap

TINY_IDE = Path(__file__).with_name("tiny_ide.py")
NAME = "code-server"
# The sandbox of an instance sees these, and no Python that is elsewhere.
SYSTEM = (Path("/usr"), Path("/opt"))
SYSTEM_PYTHON = Path("/usr/bin/python3")


class NoPython(Exception):
    """Nothing can run the IDE; the message is for a person."""


def install_ide(directory: Path) -> Path:
    """Make a package as npm would, of which a sandbox sees all; return the directory for PATH."""
    programs = directory / "bin"
    programs.mkdir(parents=True)
    (directory / "package.json").write_text("{}\n")
    shutil.copy(TINY_IDE, directory / TINY_IDE.name)
    shim = programs / NAME
    command = f'exec "{_python()}" -I -S "{directory / TINY_IDE.name}" "$@"'
    shim.write_text(f"#!/bin/sh\n{command}\n")
    shim.chmod(0o755)
    return programs


def _python() -> Path:
    own = Path(sys.executable).resolve()
    if bubblewrap() is None or _is_below(own, SYSTEM):
        return own
    if os.access(SYSTEM_PYTHON, os.X_OK):
        return SYSTEM_PYTHON
    raise NoPython(
        f"The IDE needs a Python that its sandbox can see; install {SYSTEM_PYTHON} "
        "(on Debian: apt-get install python3)."
    )


def _is_below(path: Path, directories: Sequence[Path]) -> bool:
    return any(path.is_relative_to(each) for each in directories)
