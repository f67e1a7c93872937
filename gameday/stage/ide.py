"""The game day's IDE on this machine, under the name of code-server."""

import io
import os
import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from aiodocker import Docker, DockerError

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


TINY_IDE = Path(__file__).with_name("tiny_ide.py")
BASE = "codehub-storage-job:latest"
DOCKERFILE = f"""\
FROM {BASE}
COPY tiny_ide.py /tiny_ide.py
RUN mkdir -p /home/coder && chown 1000:1000 /home/coder
LABEL codehub.io/ide=tiny codehub.io/port=8080 codehub.io/health-path=/healthz \\
      codehub.io/read-only-root=true
ENTRYPOINT ["python3", "-I", "-S", "/tiny_ide.py", "--bind-addr=0.0.0.0:8080", "/home/coder"]
"""


class CannotBuild(Exception):
    """The image cannot be made; the message is for a person."""


async def build_image(engine: Docker, name: str) -> None:
    """It takes seconds, and nothing from a network."""
    try:
        await engine.images.build(fileobj=_context(), encoding="identity", tag=name, rm=True)
    except DockerError as error:
        raise CannotBuild(
            f"Docker cannot build the game day's image ({error.message}); is {BASE} there? "
            "`make images` builds it."
        ) from error


def _context() -> io.BytesIO:
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for name, content in (("Dockerfile", DOCKERFILE.encode()), (TINY_IDE.name, TINY_IDE.read_bytes())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(content))
    context.seek(0)
    return context
