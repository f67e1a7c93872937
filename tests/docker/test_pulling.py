"""Images that are not here: fetched while people watch, or refused in the registry's own words."""

import asyncio
import gc
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiodocker import Docker
from aiohttp import web

from codehub.adapters.docker.engine import acting, open_engine
from codehub.adapters.docker.images import Image, ImageTraits, ensure_image
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest, Progress
from tests.contracts.instance_benches import opened_docker_bench
from tests.waiting import DEADLINE_SECONDS

REFERENCE = "registry.example/team/ide:1"
Events = tuple[dict[str, object], ...]


@dataclass
class Registry:
    """An engine that lacks an image, and how its pull goes."""

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
        # It cannot be taken down while somebody waits for its words.
        registry.ended.set()
        await runner.cleanup()


def downloading(layer: str, current: int, total: int) -> dict[str, object]:
    return {"status": "Downloading", "id": layer, "progressDetail": {"current": current, "total": total}}


async def test_progress_is_the_sum_of_the_layers(tmp_path: Path) -> None:
    registry = Registry(
        (
            {"status": "Pulling from team/ide", "id": "1"},
            downloading("one", 10, 100),
            downloading("two", 5, 50),
            downloading("one", 100, 100),
            {"status": "Extracting", "id": "one", "progressDetail": {"current": 1, "total": 1000}},
        )
    )
    reports: list[Progress] = []
    async with engine_of(registry, tmp_path) as engine:
        image = await ensure_image(engine, REFERENCE, reports.append, DEADLINE_SECONDS)
    assert image == Image("sha256:1", ImageTraits(ide="pulled"))
    assert {report.step for report in reports} == {"pull the image"}
    shown = [(report.done, report.total) for report in reports]
    assert shown == [(0, None), (0, None), (10, 100), (15, 150), (105, 150), (105, 150)]


async def test_the_registry_s_words_are_passed_on(tmp_path: Path) -> None:
    words = "pull access denied for team/ide, repository does not exist"
    registry = Registry(({"errorDetail": {"message": words}, "error": words},))
    async with engine_of(registry, tmp_path) as engine:
        with pytest.raises(Permanent) as caught:
            await ensure_image(engine, REFERENCE, lambda _: None, DEADLINE_SECONDS)
    assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED
    assert caught.value.message == (
        f"The image {REFERENCE} cannot be had: {words}. Build or pull it, or choose another image."
    )


async def test_a_pull_that_the_engine_breaks_off_can_be_tried_again(tmp_path: Path) -> None:
    """As when it is restarted: nobody has said that there is no such image."""
    async with engine_of(Registry((downloading("one", 1, 2),), breaks_off=True), tmp_path) as engine:
        with pytest.raises(Transient) as caught, acting():
            await ensure_image(engine, REFERENCE, lambda _: None, DEADLINE_SECONDS)
    assert caught.value.reason is ErrorReason.UNREACHABLE


# The client closes what it gave up only when it is collected.
@pytest.mark.filterwarnings("ignore:Exception ignored in.*Connection:pytest.PytestUnraisableExceptionWarning")
async def test_a_pull_does_not_take_forever(tmp_path: Path) -> None:
    async with engine_of(Registry((), hangs=True), tmp_path) as engine:
        with pytest.raises(Permanent, match="it took longer than 1 s") as caught:
            await ensure_image(engine, REFERENCE, lambda _: None, 1)
        assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED
        del caught
        gc.collect()


async def test_docker_s_words_are_passed_on_when_there_is_no_registry() -> None:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    # Nobody listens there, so it is refused at once.
    reference = "127.0.0.1:1/team/ide:1"
    async with opened_docker_bench() as bench:
        await bench.volumes.provision(workspace_id)
        with pytest.raises(Permanent, match="connection refused") as caught:
            await bench.instances.start(InstanceRequest(workspace_id, reference), lambda _: None)
        assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED
        assert caught.value.message.startswith(f"The image {reference} cannot be had: ")
        assert await bench.instances.look(workspace_id) is ContainerFact.ABSENT
