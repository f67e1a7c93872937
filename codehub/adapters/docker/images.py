"""Images: what they say about themselves, and fetching those that are not here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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


async def ensure_image(engine: Docker, reference: str, report: Report) -> Image:
    """The image, fetched if it is not here."""
    found = await find_image(engine, reference)
    if found is None:
        await _pull(engine, reference, report)
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


async def _pull(engine: Docker, reference: str, report: Report) -> None:
    """For as long as it makes progress: it is the caller who ends one that does not."""
    layers = Layers()
    report(layers.progress())
    try:
        async for event in engine.images.pull(reference, stream=True):
            if layers.note(event):
                report(layers.progress())
    except DockerError as error:
        if error.status == NO_CONNECTION:
            raise silent(error) from error
        raise _failed(reference, words_of(error)) from error
    except aiohttp.ClientError as error:
        raise silent(error) from error


@dataclass
class Layers:
    """How far a pull is: done and total bytes of each layer, first on its way here, then onto the disk."""

    downloads: dict[str, tuple[int, int]] = field(default_factory=dict)
    extractions: dict[str, tuple[int, int]] = field(default_factory=dict)

    def note(self, event: Mapping[str, Any]) -> bool:
        """Whether it has come further; an engine that waits for its registry says so again and again."""
        layer, detail = event.get("id", ""), event.get("progressDetail") or {}
        match event.get("status"):
            case "Downloading" if "total" in detail:
                return _advance(self.downloads, layer, (detail.get("current", 0), detail["total"]))
            case "Extracting" if "total" in detail:
                return _advance(self.extractions, layer, (detail.get("current", 0), detail["total"]))
            case "Download complete" if layer in self.downloads:
                total = self.downloads[layer][1]
                return _advance(self.downloads, layer, (total, total))
            # Newer engines tell only for how long they have been unpacking a layer.
            case "Extracting" | "Pull complete" | "Already exists":
                return True
        return False

    def progress(self) -> Progress:
        loading = any(done < total for done, total in self.downloads.values())
        if loading or not self.extractions:
            return _sum("pulling the image", self.downloads)
        return _sum("unpacking the image", self.extractions)


def _advance(layers: dict[str, tuple[int, int]], layer: str, figures: tuple[int, int]) -> bool:
    advanced = layers.get(layer) != figures
    layers[layer] = figures
    return advanced


def _sum(step: str, layers: Mapping[str, tuple[int, int]]) -> Progress:
    done, total = (sum(figures) for figures in zip((0, 0), *layers.values(), strict=True))
    return Progress(step, done, total or None)


def _failed(reference: str, words: str) -> Permanent:
    return Permanent(
        ErrorReason.IMAGE_PULL_FAILED,
        f"The image {reference} cannot be had: {words}. Build or pull it, or choose another image.",
    )
