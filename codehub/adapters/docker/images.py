"""Images: reads their labels and pulls missing ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import aiohttp
from aiodocker import Docker, DockerError

from codehub.adapters.docker.engine import NO_CONNECTION, error_text, unreachable
from codehub.domain.failures import Permanent
from codehub.domain.states import ErrorReason
from codehub.image_traits import ImageTraits, traits_from_labels
from codehub.ports import Progress, Report


@dataclass(frozen=True)
class Image:
    """An image that the engine has."""

    image_id: str
    traits: ImageTraits


async def ensure_image(engine: Docker, reference: str, report: Report) -> Image:
    """Return the image; pull it if the engine does not have it."""
    found = await find_image(engine, reference)
    if found is None:
        await _pull(engine, reference, report)
        found = await find_image(engine, reference)
    if found is None:
        raise _failed(reference, "the registry has no version for this machine")
    return found


async def find_image(engine: Docker, reference: str) -> Image | None:
    """Return the image, or None if the engine does not have it."""
    try:
        response = await engine.images.inspect(reference)
    except DockerError as error:
        # BAD_REQUEST: Docker cannot parse the name.
        if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST}:
            return None
        raise
    return Image(response["Id"], traits_from_labels(response["Config"]["Labels"]))


async def _pull(engine: Docker, reference: str, report: Report) -> None:
    """Pull without a timeout. The caller cancels a pull that makes no progress."""
    progress = PullProgress()
    report(progress.current())
    try:
        async for event in engine.images.pull(reference, stream=True):
            if progress.update(event):
                report(progress.current())
    except DockerError as error:
        if error.status == NO_CONNECTION:
            raise unreachable(error) from error
        raise _failed(reference, error_text(error)) from error
    except aiohttp.ClientError as error:
        raise unreachable(error) from error


@dataclass
class PullProgress:
    """The progress of a pull: done and total bytes of each layer, downloaded and extracted."""

    downloads: dict[str, tuple[int, int]] = field(default_factory=dict)
    extractions: dict[str, tuple[int, int]] = field(default_factory=dict)

    def update(self, event: Mapping[str, Any]) -> bool:
        """Return whether the pull advanced. An engine that waits for its registry repeats the same event."""
        layer, detail = event.get("id", ""), event.get("progressDetail") or {}
        match event.get("status"):
            case "Downloading" if "total" in detail:
                return _advance(self.downloads, layer, (detail.get("current", 0), detail["total"]))
            case "Extracting" if "total" in detail:
                return _advance(self.extractions, layer, (detail.get("current", 0), detail["total"]))
            case "Download complete" if layer in self.downloads:
                total = self.downloads[layer][1]
                return _advance(self.downloads, layer, (total, total))
            # Newer engines report only how long they have been extracting a layer.
            case "Extracting" | "Pull complete" | "Already exists":
                return True
        return False

    def current(self) -> Progress:
        downloading = any(done < total for done, total in self.downloads.values())
        if downloading or not self.extractions:
            return _sum("pulling the image", self.downloads)
        return _sum("unpacking the image", self.extractions)


def _advance(layers: dict[str, tuple[int, int]], layer: str, figures: tuple[int, int]) -> bool:
    advanced = layers.get(layer) != figures
    layers[layer] = figures
    return advanced


def _sum(step: str, layers: Mapping[str, tuple[int, int]]) -> Progress:
    done, total = (sum(figures) for figures in zip((0, 0), *layers.values(), strict=True))
    return Progress(step, done, total or None)


def _failed(reference: str, reason: str) -> Permanent:
    return Permanent(
        ErrorReason.IMAGE_PULL_FAILED,
        f"The image {reference} is not available: {reason}. Build or pull it, or choose another image.",
    )
