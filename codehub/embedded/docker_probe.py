"""Whether Docker can run workspaces: one quick look at the engine and its images, and a bounded pull."""

import asyncio
from collections.abc import Callable, Sequence

import aiohttp
from aiodocker import Docker, DockerError

from codehub.adapters.docker.engine import NO_CONNECTION, error_text, open_engine
from codehub.adapters.docker.images import find_image
from codehub.embedded.backends import DockerFound, docker_images
from codehub.settings import Settings

LOOK_SECONDS = 5.0
PULL_SECONDS = 60.0
MAX_ERROR_LENGTH = 200
OUR_IMAGES = frozenset(docker_images(Settings()))


async def look(url: str, images: Sequence[str], seconds: float = LOOK_SECONDS) -> DockerFound:
    """What is there, without changing anything."""
    async with open_engine(url) as engine:
        try:
            async with asyncio.timeout(seconds):
                return await _look(engine, images)
        except TimeoutError:
            return _unusable(f"Docker does not answer within {seconds:.0f} s", "restart Docker")
        except DockerError as error:
            return _refused(error)
        except (aiohttp.ClientError, LookupError, TypeError, ValueError) as error:
            # Some other server, whose answers can be anything.
            return _unusable(
                f"what answers is no Docker ({_in_one_line(error)})", "correct CODEHUB_DOCKER_URL"
            )


async def look_and_pull(
    url: str, images: Sequence[str], say: Callable[[str], None], pull_seconds: float = PULL_SECONDS
) -> DockerFound:
    """The same, after an attempt to pull what is missing; each attempt is announced and bounded."""
    found = await look(url, images)
    if not found.missing:
        return found
    async with open_engine(url) as engine:
        for image in found.missing:
            say(f"Docker has no image {image}: pulling it, for at most {pull_seconds:.0f} s ...")
            if reason := await _pull(engine, image, pull_seconds):
                return _without(found.version, (image,), f" and cannot pull it ({reason})")
    return await look(url, images)


async def _look(engine: Docker, images: Sequence[str]) -> DockerFound:
    version = str((await engine.version())["Version"])
    missing = tuple([image for image in images if await find_image(engine, image) is None])
    return _without(version, missing) if missing else DockerFound(version)


async def _pull(engine: Docker, image: str, seconds: float) -> str:
    """Why it could not be pulled; empty if it could."""
    try:
        async with asyncio.timeout(seconds):
            await engine.images.pull(image)
    except TimeoutError:
        return f"not within {seconds:.0f} s"
    except (DockerError, aiohttp.ClientError) as error:
        return _in_one_line(error)
    return ""


def _refused(error: DockerError) -> DockerFound:
    if error.status != NO_CONNECTION:
        return _unusable(f"Docker answers with an error ({_in_one_line(error)})", "look at Docker's log")
    if "Permission denied" in error.message:
        return _unusable("this user may not use Docker's socket", "add the user to the group docker")
    return _unusable("Docker does not answer", "start Docker")


def _unusable(problem: str, remedy: str) -> DockerFound:
    return DockerFound(problem=problem, remedy=remedy)


def _without(version: str, missing: tuple[str, ...], addition: str = "") -> DockerFound:
    problem = f"Docker has no image {' and no image '.join(missing)}{addition}"
    remedy = f"`make images` builds {'it' if len(missing) == 1 else 'them'}"
    if not OUR_IMAGES.issuperset(missing):
        remedy = "pull or build what is missing, or name another image"
    return DockerFound(version, missing, problem, remedy)


def _in_one_line(error: Exception) -> str:
    return " ".join(error_text(error).split())[:MAX_ERROR_LENGTH].rstrip(".")
