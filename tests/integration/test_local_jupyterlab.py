"""The real JupyterLab, in its sandbox where there is one."""

import importlib.util
import uuid
from pathlib import Path

import pytest
from aiohttp import ClientSession

from codehub.adapters.local.ides import jupyterlab
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.logs import Log
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.volumes import LocalVolumes
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.health import answers
from codehub.ports import InstanceRequest
from tests.needs import do_without

HEALTH_SECONDS = 5


@pytest.fixture(autouse=True)
def _jupyterlab() -> None:
    if importlib.util.find_spec("jupyterlab") is None:
        do_without("JupyterLab", "pip install jupyterlab")


async def test_jupyterlab_serves_its_workspace_to_those_who_have_the_token(tmp_path: Path) -> None:
    root, workspace_id = LocalRoot.at(tmp_path), WorkspaceId(str(uuid.uuid4()))
    root.prepare()
    await LocalVolumes(tmp_path).provision(workspace_id)
    instances = LocalInstances(tmp_path, ides={"jupyterlab": jupyterlab()})
    try:
        await instances.start(InstanceRequest(workspace_id, "default"), lambda _: None)
        upstream = await instances.find_upstream(workspace_id)
        assert upstream is not None
        assert upstream.keep_prefix
        for path in ("lab", "api/contents", "api/terminals", "api/kernelspecs"):
            url = f"/w/{workspace_id}/{path}"
            assert await answers(upstream.port, url, upstream.headers, HEALTH_SECONDS), path
            assert not await answers(upstream.port, url, (), HEALTH_SECONDS), path
        base_url = f"http://{upstream.host}:{upstream.port}"
        async with ClientSession(base_url, headers=upstream.headers) as session:
            for path in ("terminals", "kernels"):
                async with session.post(f"/w/{workspace_id}/api/{path}") as answer:
                    assert answer.ok, path
        output, _ = Log(root.instance(workspace_id)).tail(1000)
        assert upstream.headers[0][1].removeprefix("token ").encode() not in output
    finally:
        await instances.stop(workspace_id)
    assert await instances.look(workspace_id) is ContainerFact.ABSENT
