"""The image of a game day's workspaces: the tiny IDE on the storage job's image, which has a Python."""

import io
import tarfile
from pathlib import Path

from aiodocker import Docker, DockerError

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
