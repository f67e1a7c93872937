"""Missing images: pulled with progress, or refused with the registry's message."""

import asyncio
import gc
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from aiodocker import Docker
from aiohttp import web
from temporalio.testing import ActivityEnvironment

from activities.step_monitor import StepMonitor
from codehub.adapters.docker.engine import open_engine, translate_change_errors
from codehub.adapters.docker.images import Image, ensure_image
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.states import ErrorReason
from codehub.health import Headers
from codehub.image_traits import ImageTraits, traits_from_labels
from codehub.ports import ImageMissing, InstanceRequest, Progress
from testkit.fakes import FakeProgressBoard
from tests.contracts.instance_harness import opened_docker_harness

REFERENCE = "registry.example/team/ide:1"
Events = tuple[dict[str, object], ...]


@dataclass
class Registry:
    """An engine that lacks an image, and the events of its pull."""

    events: Events
    breaks_off: bool = False
    hangs: bool = False
    present: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def version(self, _request: web.Request) -> web.Response:
        return web.json_response({"ApiVersion": "1.41"})

    async def inspect(self, _request: web.Request) -> web.Response:
        if not self.present:
            return web.json_response({"message": "No such image"}, status=404)
        return web.json_response({"Id": "sha256:1", "Config": {"Labels": {"codehub.io/ide": "pulled"}}})

    async def pull(self, request: web.Request) -> web.StreamResponse:
        assert request.query["fromImage"] == REFERENCE
        response = web.StreamResponse()
        await response.prepare(request)
        for event in self.events:
            await response.write(f"{json.dumps(event)}\r\n".encode())
        if self.hangs:
            await self.ended.wait()
        if self.breaks_off:
            assert request.transport is not None
            request.transport.abort()
        self.present = not self.breaks_off
        return response


@asynccontextmanager
async def engine_of(registry: Registry, directory: Path) -> AsyncIterator[Docker]:
    app = web.Application()
    app.router.add_get("/version", registry.version)
    app.router.add_get("/v1.41/images/{name:.+}/json", registry.inspect)
    app.router.add_post("/v1.41/images/create", registry.pull)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, str(directory / "docker.sock")).start()
    try:
        async with open_engine(f"unix://{directory}/docker.sock") as engine:
            yield engine
    finally:
        # It cannot be shut down while a client waits for its response.
        registry.ended.set()
        await runner.cleanup()


def downloading(layer: str, current: int, total: int) -> dict[str, object]:
    return {"status": "Downloading", "id": layer, "progressDetail": {"current": current, "total": total}}


def extracting(layer: str, current: int, total: int) -> dict[str, object]:
    return {"status": "Extracting", "id": layer, "progressDetail": {"current": current, "total": total}}


async def test_progress_is_the_sum_of_the_layers_first_downloaded_and_then_extracted(tmp_path: Path) -> None:
    registry = Registry(
        (
            {"status": "Pulling from team/ide", "id": "1"},
            downloading("one", 10, 100),
            downloading("two", 5, 50),
            downloading("one", 100, 100),
            extracting("one", 1, 100),
            {"status": "Download complete", "id": "two"},
            extracting("one", 100, 100),
            extracting("two", 20, 50),
            {"status": "Pull complete", "id": "one"},
        )
    )
    reports: list[Progress] = []
    async with engine_of(registry, tmp_path) as engine:
        image = await ensure_image(engine, REFERENCE, reports.append)
    assert image == Image("sha256:1", ImageTraits(ide="pulled"))
    shown = [(report.step, report.done, report.total) for report in reports]
    assert shown == [
        ("pulling the image", 0, None),
        ("pulling the image", 10, 100),
        ("pulling the image", 15, 150),
        ("pulling the image", 105, 150),
        ("pulling the image", 105, 150),
        ("unpacking the image", 1, 100),
        ("unpacking the image", 100, 100),
        ("unpacking the image", 120, 150),
        ("unpacking the image", 120, 150),
    ]


async def test_only_advances_are_reported(tmp_path: Path) -> None:
    """Otherwise a stalled pull would look as if it made progress."""
    registry = Registry(
        (
            downloading("one", 10, 100),
            downloading("one", 10, 100),
            {"status": "Waiting", "id": "two"},
            {"status": "Retrying in 5 seconds", "id": "one"},
            {"status": "Retrying in 4 seconds", "id": "one"},
        )
    )
    reports: list[Progress] = []
    async with engine_of(registry, tmp_path) as engine:
        await ensure_image(engine, REFERENCE, reports.append)
    assert [report.done for report in reports] == [0, 10]


async def test_an_engine_that_reports_only_the_time_of_an_extraction_makes_progress(tmp_path: Path) -> None:
    timed: dict[str, object] = {
        "status": "Extracting",
        "id": "one",
        "progressDetail": {"current": 7, "units": "s"},
    }
    reports: list[Progress] = []
    async with engine_of(Registry((timed,)), tmp_path) as engine:
        await ensure_image(engine, REFERENCE, reports.append)
    assert len(reports) == 2


async def test_the_message_of_the_registry_is_passed_on(tmp_path: Path) -> None:
    words = "pull access denied for team/ide, repository does not exist"
    registry = Registry(({"errorDetail": {"message": words}, "error": words},))
    async with engine_of(registry, tmp_path) as engine:
        with pytest.raises(Permanent) as caught:
            await ensure_image(engine, REFERENCE, lambda _: None)
    assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED
    assert caught.value.message == (
        f"The image {REFERENCE} is not available: {words}. Build or pull it, or choose another image."
    )


async def test_a_pull_that_the_engine_interrupts_can_be_retried(tmp_path: Path) -> None:
    """As after a restart: this does not mean that the image does not exist."""
    async with engine_of(Registry((downloading("one", 1, 2),), breaks_off=True), tmp_path) as engine:
        with pytest.raises(Transient) as caught, translate_change_errors():
            await ensure_image(engine, REFERENCE, lambda _: None)
    assert caught.value.reason is ErrorReason.UNREACHABLE


# The client closes an abandoned connection only when it is garbage collected.
@pytest.mark.filterwarnings("ignore:Exception ignored in.*Connection:pytest.PytestUnraisableExceptionWarning")
async def test_a_stalled_pull_can_be_retried(tmp_path: Path) -> None:
    async def step() -> None:
        monitor = StepMonitor(FakeProgressBoard(), timedelta(seconds=1))
        async with monitor.watch("start", WorkspaceId("one")) as report:
            await ensure_image(engine, REFERENCE, report)

    async with engine_of(Registry((downloading("one", 1, 2),), hangs=True), tmp_path) as engine:
        with pytest.raises(
            Transient, match="The step “pulling the image” made no progress for 1 s"
        ) as caught:
            await ActivityEnvironment().run(step)
        assert caught.value.reason is ErrorReason.ACTION_FAILED
        del caught
        gc.collect()


async def test_the_message_of_docker_is_passed_on_without_a_registry() -> None:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    # No server listens there, so it is refused at once.
    reference = "127.0.0.1:1/team/ide:1"
    async with opened_docker_harness() as harness:
        await harness.volumes.provision(workspace_id)
        with pytest.raises(ImageMissing):
            await harness.instances.start(InstanceRequest(workspace_id, reference), lambda _: None)
        with pytest.raises(Permanent, match="connection refused") as caught:
            await harness.instances.pull(reference, lambda _: None)
        assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED
        assert caught.value.message.startswith(f"The image {reference} is not available: ")
        assert await harness.instances.observe(workspace_id) is ContainerFact.ABSENT


@pytest.mark.parametrize(
    ("label", "headers"),
    [
        ("Cookie: session={secret}", (("Cookie", "session=s3cret"),)),
        ("Authorization: token {secret}", (("Authorization", "token s3cret"),)),
        ("X-Ide-Secret: {secret}", (("X-Ide-Secret", "s3cret"),)),
        ("Host: {secret}", ()),
        ("Cookie: a={secret}\r\nX-Forwarded-For: 1.2.3.4", ()),
        ("Cookie: session=ours; other={secret}", ()),
        ("", ()),
    ],
)
def test_an_image_can_choose_only_a_harmless_header(label: str, headers: Headers) -> None:
    labels = {"codehub.io/secret-variable": "SECRET", "codehub.io/secret-header": label}
    assert traits_from_labels(labels).headers("s3cret") == headers
