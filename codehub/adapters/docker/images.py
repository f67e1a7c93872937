"""Images: what they say about themselves, and fetching those that are not here."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp
from aiodocker import Docker, DockerError

from codehub.adapters.docker.engine import NO_CONNECTION, silent, words_of
from codehub.domain.failures import Permanent
from codehub.domain.states import ErrorReason
from codehub.ports import Progress, Report

PREFIX = "codehub.io/"


@dataclass(frozen=True)
class ImageTraits:
    """What an image's labels say of the IDE in it; without labels, that it is like code-server."""

    ide: str = "code-server"
    port: int = 8080
    health_path: str = "/healthz"
    keep_prefix: bool = False
    read_only_root: bool = False


def traits_of(labels: Mapping[str, str] | None) -> ImageTraits:
    """A container has its image's labels too, so this also tells what is in a container."""
    said = labels or {}
    default = ImageTraits()
    port = said.get(f"{PREFIX}port", "")
    return ImageTraits(
        ide=said.get(f"{PREFIX}ide", default.ide),
        port=int(port) if port.isdecimal() else default.port,
        health_path=said.get(f"{PREFIX}health-path", default.health_path),
        keep_prefix=said.get(f"{PREFIX}keep-prefix") == "true",
        read_only_root=said.get(f"{PREFIX}read-only-root") == "true",
    )


@dataclass(frozen=True)
class Image:
    """An image that is here."""

    image_id: str
    traits: ImageTraits


async def ensure_image(engine: Docker, reference: str, report: Report, seconds: float) -> Image:
    """The image, fetched if it is not here."""
    found = await find_image(engine, reference)
    if found is None:
        await _pull(engine, reference, report, seconds)
        found = await find_image(engine, reference)
    if found is None:
        raise _failed(reference, "the registry has it, but not for this machine")
    return found


async def find_image(engine: Docker, reference: str) -> Image | None:
    """The image, if it is here."""
    try:
        answer = await engine.images.inspect(reference)
    except DockerError as error:
        # A name that Docker cannot even parse is a bad request.
        if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST}:
            return None
        raise
    return Image(answer["Id"], traits_of(answer["Config"]["Labels"]))


async def _pull(engine: Docker, reference: str, report: Report, seconds: float) -> None:
    layers: dict[str, tuple[int, int]] = {}
    try:
        async with asyncio.timeout(seconds):
            report(Progress("pull the image"))
            async for event in engine.images.pull(reference, stream=True):
                _note(layers, event)
                done = sum(current for current, _ in layers.values())
                total = sum(size for _, size in layers.values())
                report(Progress("pull the image", done, total or None))
    except DockerError as error:
        if error.status == NO_CONNECTION:
            raise silent(error) from error
        raise _failed(reference, words_of(error)) from error
    except TimeoutError as error:
        raise _failed(reference, f"it took longer than {seconds:.0f} s") from error
    except aiohttp.ClientError as error:
        raise silent(error) from error


def _note(layers: dict[str, tuple[int, int]], event: Mapping[str, Any]) -> None:
    detail = event.get("progressDetail") or {}
    if event.get("status") == "Downloading" and "total" in detail:
        layers[event["id"]] = (detail.get("current", 0), detail["total"])


def _failed(reference: str, words: str) -> Permanent:
    return Permanent(
        ErrorReason.IMAGE_PULL_FAILED,
        f"The image {reference} cannot be had: {words}. Build or pull it, or choose another image.",
    )
