"""Checks whether Docker can run workspaces, and pulls missing images within a time limit."""

import asyncio
from collections.abc import Callable, Sequence

import aiohttp
from aiodocker import Docker, DockerError

from codehub.adapters.docker.engine import (
    ELSEWHERE,
    NO_CONNECTION,
    PUBLISH_INSTEAD,
    error_text,
    is_on_this_machine,
    open_engine,
)
from codehub.adapters.docker.images import find_image
from codehub.embedded.backends import DockerStatus, docker_images
from codehub.settings import Settings

PROBE_SECONDS = 5.0
PULL_SECONDS = 60.0
MAX_ERROR_LENGTH = 200
CODEHUB_IMAGES = frozenset(docker_images(Settings()))


async def probe_docker(
    url: str, images: Sequence[str], seconds: float = PROBE_SECONDS, *, publish_ports: bool = False
) -> DockerStatus:
    """Check the engine and the images, the workspace image first, without changing anything."""
    async with open_engine(url) as engine:
        try:
            async with asyncio.timeout(seconds):
                return await _probe(engine, images, publish_ports=publish_ports)
        except TimeoutError:
            return _unusable(f"Docker does not answer within {seconds:.0f} s", "restart Docker")
        except DockerError as error:
            return _refused(error)
        except (aiohttp.ClientError, LookupError, TypeError, ValueError) as error:
            # Another server can send anything.
            return _unusable(
                f"the server at that address is not Docker ({_in_one_line(error)})",
                "correct CODEHUB_DOCKER_URL",
            )


async def probe_and_pull(
    url: str,
    images: Sequence[str],
    say: Callable[[str], None],
    pull_seconds: float = PULL_SECONDS,
    *,
    publish_ports: bool = False,
) -> DockerStatus:
    """Check Docker, and pull missing images. Announce each pull and limit its time."""
    found = await probe_docker(url, images, publish_ports=publish_ports)
    if not found.missing:
        return found
    async with open_engine(url) as engine:
        for image in found.missing:
            say(f"Docker has no image {image}: pulling it (at most {pull_seconds:.0f} s) ...")
            if reason := await _pull(engine, image, pull_seconds):
                return _missing_images(found.version, (image,), f" and cannot pull it ({reason})")
    return await probe_docker(url, images, publish_ports=publish_ports)


async def _probe(engine: Docker, images: Sequence[str], *, publish_ports: bool) -> DockerStatus:
    version = str((await engine.version())["Version"])
    if not publish_ports and not await is_on_this_machine(engine):
        return _unusable(ELSEWHERE, PUBLISH_INSTEAD)
    found = {image: await find_image(engine, image) for image in images}
    if missing := tuple(name for name, image in found.items() if image is None):
        return _missing_images(version, missing)
    workspace = found[images[0]]
    if not publish_ports and workspace and not workspace.traits.socket_arguments:
        return _without_agent(images[0])
    return DockerStatus(version)


def _without_agent(image: str) -> DockerStatus:
    remedy = "`make images` builds it again" if image in CODEHUB_IMAGES else "build it on CodeHub's image"
    return _unusable(f"the image {image} lacks the agent of this release", remedy)


async def _pull(engine: Docker, image: str, seconds: float) -> str:
    """Pull the image. Return the reason if that fails, or an empty string."""
    try:
        async with asyncio.timeout(seconds):
            await engine.images.pull(image)
    except TimeoutError:
        return f"not within {seconds:.0f} s"
    except (DockerError, aiohttp.ClientError) as error:
        return _in_one_line(error)
    return ""


def _refused(error: DockerError) -> DockerStatus:
    if error.status != NO_CONNECTION:
        return _unusable(f"Docker returns an error ({_in_one_line(error)})", "check Docker's log")
    if "Permission denied" in error.message:
        return _unusable("this user has no access to Docker's socket", "add the user to the group docker")
    return _unusable("Docker does not answer", "start Docker")


def _unusable(problem: str, remedy: str) -> DockerStatus:
    return DockerStatus(problem=problem, remedy=remedy)


def _missing_images(version: str, missing: tuple[str, ...], addition: str = "") -> DockerStatus:
    problem = f"Docker has no image {' and no image '.join(missing)}{addition}"
    remedy = f"`make images` builds {'it' if len(missing) == 1 else 'them'}"
    if not CODEHUB_IMAGES.issuperset(missing):
        remedy = "pull or build the missing image, or choose another one"
    return DockerStatus(version, missing, problem, remedy)


def _in_one_line(error: Exception) -> str:
    return " ".join(error_text(error).split())[:MAX_ERROR_LENGTH].rstrip(".")
