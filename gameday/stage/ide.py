"""Install the tiny IDE: as `code-server` on this machine, or as a Docker image."""

import io
import os
import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from aiodocker import Docker, DockerError

from codehub.adapters.local.sandbox import AGENT_PACKAGE
from gameday.stage.tiny_ide import SECRET_HEADER, SECRET_VARIABLE

TINY_IDE = Path(__file__).with_name("tiny_ide.py")
PROGRAM = "code-server"
# The sandbox of an instance sees these directories, so a Python elsewhere does not work.
SYSTEM_DIRECTORIES = (Path("/usr"), Path("/opt"))
SYSTEM_PYTHON = Path("/usr/bin/python3")

BASE_IMAGE = "codehub-storage-job:latest"
RUN_AGENT = (
    "import sys; sys.path.insert(0, '/opt/codehub'); "
    "from workspace_agent.__main__ import main; sys.exit(main(sys.argv[1:]))"
)
# Kubernetes does not tell the labels of images, so its backend gets them as a setting.
LABELS = {
    "codehub.io/ide": "tiny",
    "codehub.io/port": "8080",
    "codehub.io/health-path": "/healthz",
    "codehub.io/read-only-root": "true",
    "codehub.io/secret-variable": SECRET_VARIABLE,
    "codehub.io/secret-header": f"{SECRET_HEADER}: {{secret}}",
    "codehub.io/agent-port": "3129",
    "codehub.io/socket-arguments": "--socket={socket} /home/coder",
}
DOCKERFILE = f"""\
FROM {BASE_IMAGE}
COPY tiny_ide.py /tiny_ide.py
COPY workspace_agent /opt/codehub/workspace_agent
RUN mkdir -p /home/coder && chown 1000:1000 /home/coder
LABEL {" ".join(f'{name}="{value}"' for name, value in LABELS.items())}
ENTRYPOINT ["python3", "-I", "-S", "-c", "{RUN_AGENT}", "python3", "-I", "-S", "/tiny_ide.py"]
CMD ["--bind-addr=0.0.0.0:8080", "/home/coder"]
"""


class NoPython(Exception):
    """No Python can run the IDE; the message says what to install."""


class CannotBuild(Exception):
    """The image cannot be built; the message says what to do."""


def install_ide(directory: Path) -> Path:
    """Install like an npm package, which a sandbox sees completely; return the directory for PATH."""
    programs = directory / "bin"
    programs.mkdir(parents=True)
    (directory / "package.json").write_text("{}\n")
    shutil.copy(TINY_IDE, directory / TINY_IDE.name)
    program = programs / PROGRAM
    command = f'exec "{_find_python()}" -I -S "{directory / TINY_IDE.name}" "$@"'
    program.write_text(f"#!/bin/sh\n{command}\n")
    program.chmod(0o755)
    return programs


def _find_python() -> Path:
    own = Path(sys.executable).resolve()
    if _is_below(own, SYSTEM_DIRECTORIES):
        return own
    if os.access(SYSTEM_PYTHON, os.X_OK):
        return SYSTEM_PYTHON
    raise NoPython(
        f"The IDE needs a Python that its sandbox can see. Install {SYSTEM_PYTHON} "
        "(on Debian: apt-get install python3)."
    )


def _is_below(path: Path, directories: Sequence[Path]) -> bool:
    return any(path.is_relative_to(each) for each in directories)


async def build_image(engine: Docker, name: str) -> None:
    """Build the image from the storage job's image, which has Python; this takes seconds and no network."""
    try:
        await engine.images.build(fileobj=_build_context(), encoding="identity", tag=name, rm=True)
    except DockerError as error:
        raise CannotBuild(
            f"Docker cannot build the image of the game day ({error.message}). "
            f"If {BASE_IMAGE} is missing, run: make images"
        ) from error


def _build_context() -> io.BytesIO:
    agent = {f"{AGENT_PACKAGE.name}/{each.name}": each for each in AGENT_PACKAGE.glob("*.py")}
    files = {name: path.read_bytes() for name, path in {**agent, TINY_IDE.name: TINY_IDE}.items()}
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for name, content in {**files, "Dockerfile": DOCKERFILE.encode()}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(content))
    context.seek(0)
    return context
