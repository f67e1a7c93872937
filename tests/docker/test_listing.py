"""A sweep sends two requests to the engine, however many workspaces there are."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, UnixConnector, web

from codehub.adapters.docker.engine import UNIX_SCHEME, open_engine
from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.domain.conditions import ContainerFact
from codehub.ports import InstanceRequest
from testkit.docker_engine import URL, build, opened_engine
from testkit.fakes import IMAGE
from testkit.rows import new_workspace_id


@asynccontextmanager
async def listened_to(socket: Path, paths: list[str]) -> AsyncIterator[str]:
    """Return the URL of the real engine behind a proxy that records requests."""
    connector = UnixConnector(URL.removeprefix(UNIX_SCHEME))

    async def pass_on(request: web.Request) -> web.Response:
        paths.append(request.path)
        url = f"http://localhost{request.raw_path}"
        async with session.request(request.method, url, data=await request.read()) as answer:
            return web.Response(
                status=answer.status, body=await answer.read(), content_type=answer.content_type
            )

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", pass_on)
    runner = web.AppRunner(app)
    async with ClientSession(connector=connector) as session:
        await runner.setup()
        try:
            await web.UnixSite(runner, str(socket)).start()
            yield f"{UNIX_SCHEME}{socket}"
        finally:
            await runner.cleanup()


@pytest.mark.parametrize("count", [1, 3])
async def test_a_sweep_lists_once(count: int, tmp_path: Path) -> None:
    build(IMAGE, "tiny-ide.Dockerfile")
    paths: list[str] = []
    async with opened_engine() as engine:
        instances = DockerInstances(engine.client, engine.options)
        volumes = DockerVolumes(engine.client, engine.options)
        workspaces = {new_workspace_id() for _ in range(count)}
        for workspace_id in workspaces:
            await volumes.provision(workspace_id)
            await instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
        async with listened_to(tmp_path / "docker.sock", paths) as url, open_engine(url) as heard:
            facts = await DockerInstances(heard, engine.options).list_all()
            homes = await DockerVolumes(heard, engine.options).list_all()
    assert facts == dict.fromkeys(workspaces, ContainerFact.READY)
    assert set(homes) == workspaces
    asked = [path.rpartition("/v1.")[2].partition("/")[2] for path in paths if path != "/version"]
    assert asked == ["containers/json", "volumes"]
