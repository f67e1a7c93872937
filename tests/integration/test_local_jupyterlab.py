"""The real JupyterLab, in its sandbox if there is one."""

import asyncio
import importlib.util
import runpy
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import pytest
from aiohttp import ClientSession, UnixConnector

from codehub.adapters.local.ides import RUN_JUPYTERLAB, jupyterlab
from codehub.adapters.local.instance_files import Log
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.volumes import LocalVolumes
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.health import is_healthy
from codehub.ports import InstanceRequest, Upstream
from codehub.unix_sockets import connectable
from testkit.needs import do_without

HEALTH_SECONDS = 5
# Without the fix, about one listing in twenty failed.
RENAMES = 200


@pytest.fixture(autouse=True)
def _jupyterlab() -> None:
    if importlib.util.find_spec("jupyterlab") is None:
        do_without("JupyterLab", "pip install jupyterlab")


@asynccontextmanager
async def running_jupyterlab(tmp_path: Path) -> AsyncIterator[tuple[WorkspaceId, Upstream]]:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    LocalRoot.at(tmp_path).prepare()
    await LocalVolumes(tmp_path).provision(workspace_id)
    instances = LocalInstances(tmp_path, ides={"jupyterlab": jupyterlab()})
    try:
        await instances.start(InstanceRequest(workspace_id, "default"), lambda _: None)
        upstream = await instances.find_upstream(workspace_id)
        assert upstream is not None
        yield workspace_id, upstream
    finally:
        await instances.stop(workspace_id)
    assert await instances.observe(workspace_id) is ContainerFact.ABSENT


@asynccontextmanager
async def session_with(upstream: Upstream) -> AsyncIterator[ClientSession]:
    with connectable(upstream.host) as path:
        async with ClientSession(
            "http://localhost", headers=upstream.headers, connector=UnixConnector(path)
        ) as session:
            yield session


async def test_jupyterlab_serves_its_workspace_to_clients_with_the_token(tmp_path: Path) -> None:
    async with running_jupyterlab(tmp_path) as (workspace_id, upstream):
        assert upstream.keep_prefix
        for path in ("lab", "api/contents", "api/terminals", "api/kernelspecs"):
            url = f"/{path}"
            assert await is_healthy(upstream.host, url, upstream.headers, HEALTH_SECONDS), path
            assert not await is_healthy(upstream.host, url, (), HEALTH_SECONDS), path
        async with session_with(upstream) as session:
            for path in ("terminals", "kernels"):
                async with session.post(f"/api/{path}") as answer:
                    assert answer.ok, path
        output, _ = Log(LocalRoot.at(tmp_path).instance(workspace_id)).tail(1000)
        assert upstream.headers[0][1].removeprefix("token ").encode() not in output


async def test_jupyterlab_lists_a_directory_while_a_file_in_it_is_renamed(tmp_path: Path) -> None:
    async with running_jupyterlab(tmp_path) as (_, upstream), session_with(upstream) as session:
        contents, seen = "/api/contents", Counter[int]()

        async def rename(old: str, new: str) -> None:
            async with session.patch(f"{contents}/{old}", json={"path": new}) as answer:
                assert answer.ok, await answer.text()

        async def rename_back_and_forth() -> None:
            for _ in range(RENAMES // 2):
                await rename("untitled.txt", "notes.txt")
                await rename("notes.txt", "untitled.txt")

        async with session.post(contents, json={"type": "file", "ext": ".txt"}) as answer:
            assert (await answer.json())["name"] == "untitled.txt"
        renaming = asyncio.create_task(rename_back_and_forth())
        while not renaming.done():
            async with session.get(contents, params={"content": "1"}) as answer:
                seen[answer.status] += 1
        await renaming
        assert set(seen) == {HTTPStatus.OK}, seen


async def test_a_checkpoint_that_disappears_is_left_out(tmp_path: Path) -> None:
    contents = runpy.run_path(str(RUN_JUPYTERLAB))["Contents"](root_dir=str(tmp_path))

    class Checkpoints(type(contents.checkpoints)):  # type: ignore[misc]
        """Removes a checkpoint between its discovery and its model."""

        async def checkpoint_model(self, checkpoint_id: str, os_path: str) -> object:
            Path(os_path).unlink()
            return await super().checkpoint_model(checkpoint_id, os_path)

    (tmp_path / "notes.txt").touch()
    await contents.create_checkpoint("notes.txt")
    assert len(await contents.list_checkpoints("notes.txt")) == 1
    contents.checkpoints = Checkpoints(parent=contents)
    assert await contents.list_checkpoints("notes.txt") == []


async def test_a_file_that_disappears_is_left_out_of_the_listing_of_its_directory(tmp_path: Path) -> None:
    program = runpy.run_path(str(RUN_JUPYTERLAB))

    class Contents(program["Contents"]):  # type: ignore[misc, valid-type]
        """Removes a file between the two reads of it."""

        def should_list(self, name: str) -> bool:
            if name == "vanishing.txt":
                (tmp_path / name).unlink()
            return bool(super().should_list(name))

    for name in ("kept.txt", "vanishing.txt"):
        (tmp_path / name).touch()
    contents = Contents(root_dir=str(tmp_path))
    listing = await contents.get("")
    assert [entry["name"] for entry in listing["content"]] == ["kept.txt"]
    for missing in ("vanishing.txt", "missing/"):
        with pytest.raises(program["HTTPError"]) as caught:
            await contents.get(missing)
        assert caught.value.status_code == HTTPStatus.NOT_FOUND
