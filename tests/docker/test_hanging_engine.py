"""An engine that accepts connections and never responds: every call ends after its timeout."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiodocker import Docker
from aiohttp import web

from codehub.adapters.docker.engine import open_engine
from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.jobs.storage_jobs import DockerStorageJobs
from codehub.adapters.docker.options import DockerOptions, Timeouts
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import UNRECORDED, ArchiveStore, InstanceRequest
from testkit.docker_engine import NO_SOCKETS
from testkit.fakes import IMAGE
from testkit.waiting import DEADLINE_SECONDS

RESPONSE_SECONDS = 0.2
OPTIONS = DockerOptions(NO_SOCKETS, timeouts=Timeouts(stop=0, response=RESPONSE_SECONDS))
STORE = ArchiveStore("bucket", "id", "secret")
WORKSPACE_ID = WorkspaceId(str(uuid.uuid4()))


@pytest.fixture(params=["from the start", "later"])
async def hanging(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Docker]:
    hanging = hanging_engine(tmp_path / "docker.sock", greets=request.param == "later")
    async with hanging as url, open_engine(url, RESPONSE_SECONDS) as engine:
        yield engine


@asynccontextmanager
async def hanging_engine(socket: Path, *, greets: bool) -> AsyncIterator[str]:
    ended = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        if not (greets and request.path == "/version"):
            await ended.wait()
        return web.json_response({"ApiVersion": "1.41"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, str(socket)).start()
    try:
        yield f"unix://{socket}"
    finally:
        # It cannot be shut down while a client waits for its response.
        ended.set()
        await runner.cleanup()


async def test_no_call_waits_forever(hanging: Docker) -> None:
    instances = DockerInstances(hanging, OPTIONS)
    volumes = DockerVolumes(hanging, OPTIONS)
    jobs = DockerStorageJobs(hanging, OPTIONS, STORE)
    calls = (
        instances.observe(WORKSPACE_ID),
        instances.list_all(),
        instances.find_upstream(WORKSPACE_ID),
        instances.start(InstanceRequest(WORKSPACE_ID, IMAGE), lambda _: None),
        instances.stop(WORKSPACE_ID),
        anext(instances.read_log(WORKSPACE_ID, tail=1, follow=True)),
        volumes.observe(WORKSPACE_ID),
        volumes.list_all(),
        volumes.provision(WORKSPACE_ID),
        volumes.remove(WORKSPACE_ID),
        jobs.archive(WORKSPACE_ID, "key", lambda _: None),
        jobs.restore(WORKSPACE_ID, "key", lambda _: None, UNRECORDED),
        jobs.create_empty(WORKSPACE_ID, "key", lambda _: None),
    )
    async with asyncio.timeout(DEADLINE_SECONDS):
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(each) for each in outcomes} == {Transient}
    assert {each.reason for each in outcomes if isinstance(each, Transient)} == {ErrorReason.UNREACHABLE}
