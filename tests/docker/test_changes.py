"""The engine's events report at once what people do with Docker's own commands."""

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiodocker import Docker
from aiohttp import web

from codehub.adapters.docker.changes import DockerChanges
from codehub.adapters.docker.engine import open_engine
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, job_name, volume_name
from testkit.docker_engine import JOB_IMAGE, URL, Engine, docker, opened_engine
from testkit.waiting import until

ENGINE_SOCKET = Path(URL.removeprefix("unix://"))


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    async with opened_engine() as engine:
        yield engine


class ReportedChanges:
    """The workspaces whose changes were reported."""

    def __init__(self) -> None:
        self.workspaces: list[WorkspaceId] = []

    async def listen(self, client: Docker) -> None:
        async for workspace_id in DockerChanges(client).follow():
            self.workspaces.append(workspace_id)

    async def until_reported(self, workspace_id: WorkspaceId) -> None:
        async def reported() -> bool:
            return workspace_id in self.workspaces

        await until(reported, "the change is reported")


@asynccontextmanager
async def following(client: Docker) -> AsyncIterator[ReportedChanges]:
    reported = ReportedChanges()
    task = asyncio.create_task(reported.listen(client))
    try:
        yield reported
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def following_already(client: Docker) -> AsyncIterator[ReportedChanges]:
    """Wait until events arrive."""
    async with following(client) as reported:
        await until_events_arrive(reported)
        yield reported


async def until_events_arrive(reported: ReportedChanges) -> None:
    bait = new_workspace_id()

    async def swallowed() -> bool:
        docker("volume", "create", volume_name(bait))
        docker("volume", "rm", volume_name(bait))
        return bait in reported.workspaces

    await until(swallowed, "events arrive")


def new_workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid.uuid4()))


def run_container(engine: Engine, name: str, workspace_id: WorkspaceId) -> None:
    labels = [f"--label={name}={value}" for name, value in engine.options.labels(workspace_id).items()]
    docker("run", "--detach", "--name", name, *labels, "--entrypoint", "sleep", JOB_IMAGE, "infinity")


@pytest.mark.parametrize("deed", [("kill",), ("rm", "--force")])
async def test_an_exited_container_is_reported(engine: Engine, deed: tuple[str, ...]) -> None:
    workspace_id = new_workspace_id()
    run_container(engine, container_name(workspace_id), workspace_id)
    async with following_already(engine.client) as reported:
        assert workspace_id not in reported.workspaces
        docker(*deed, container_name(workspace_id))
        await reported.until_reported(workspace_id)


async def test_a_removed_volume_is_reported(engine: Engine) -> None:
    workspace_id = new_workspace_id()
    docker("volume", "create", volume_name(workspace_id))
    async with following_already(engine.client) as reported:
        assert workspace_id not in reported.workspaces
        docker("volume", "rm", volume_name(workspace_id))
        await reported.until_reported(workspace_id)


async def test_jobs_and_other_containers_are_not_reported(engine: Engine) -> None:
    worked_on, other_container, last = new_workspace_id(), new_workspace_id(), new_workspace_id()
    run_container(engine, job_name(worked_on), worked_on)
    run_container(engine, f"other-{other_container}", other_container)
    docker("volume", "create", volume_name(last))
    async with following_already(engine.client) as reported:
        docker("rm", "--force", job_name(worked_on), f"other-{other_container}")
        docker("volume", "rm", volume_name(last))
        # Events arrive in order, so the others would have come before it.
        await reported.until_reported(last)
        assert not {worked_on, other_container} & {*reported.workspaces}


async def test_an_engine_that_is_down_at_first_is_followed_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    socket = tmp_path / "docker.sock"
    async with open_engine(f"unix://{socket}") as client, following(client) as reported:

        async def logged_outage() -> bool:
            return "No events from Docker" in caplog.text

        with caplog.at_level(logging.WARNING):
            await until(logged_outage, "it notices that nobody is there")
            socket.symlink_to(ENGINE_SOCKET)
            await until_events_arrive(reported)


async def test_an_ended_stream_is_reopened(tmp_path: Path) -> None:
    """End the stream, as a restart of the engine does."""
    workspaces = [new_workspace_id(), new_workspace_id()]
    telling = engine_that_tells_and_hangs_up(tmp_path / "docker.sock", workspaces)
    async with telling as url, open_engine(url) as client, following(client) as reported:
        await reported.until_reported(workspaces[-1])
        assert reported.workspaces == workspaces


@asynccontextmanager
async def engine_that_tells_and_hangs_up(socket: Path, workspaces: list[WorkspaceId]) -> AsyncIterator[str]:
    untold = iter(workspaces)

    async def version(_request: web.Request) -> web.Response:
        return web.json_response({"ApiVersion": "1.41"})

    async def events(_request: web.Request) -> web.Response:
        reported = [
            {"Type": "volume", "Actor": {"ID": volume_name(each)}} for each in [next(untold, None)] if each
        ]
        return web.Response(text="".join(f"{json.dumps(each)}\n" for each in reported))

    app = web.Application()
    app.router.add_get("/version", version)
    app.router.add_get("/v1.41/events", events)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, str(socket)).start()
    try:
        yield f"unix://{socket}"
    finally:
        await runner.cleanup()
