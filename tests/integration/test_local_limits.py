"""One workspace cannot take all processes or all memory of the machine, started by root or not."""

import json
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from codehub.adapters.local import cgroups
from codehub.adapters.local.cgroups import Limits
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.volumes import LocalVolumes
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.ports import InstanceRequest
from testkit.fakes import IMAGE
from testkit.needs import need_bubblewrap, need_program, need_root
from tests.contracts.instance_harness import IDES, PATIENCE, ask

MIB = 1024 * 1024
LIMITS = Limits(memory_bytes=256 * MIB, cpus=0.5, processes=40)
# Prints how many children it could start, up to twice the limit.
FORK = """
import os, signal
children = []
try:
    for _ in range(80):
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except OSError:
    pass
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
print(len(children))
"""
# A child, so that this process survives it.
ALLOCATE = """
import os
pid = os.fork()
if pid == 0:
    try:
        memory = bytearray(b"x") * (512 * 1024 * 1024)
    except MemoryError:
        os._exit(1)
    os._exit(0)
print(os.waitpid(pid, 0)[1] == 0)
"""


@pytest.fixture
def empty_hierarchy(tmp_path: Path) -> Iterator[Path]:
    """A hierarchy of version 2 below a new group, which gets no controllers."""
    need_root()
    mounted = tmp_path / "cgroup2"
    mounted.mkdir()
    subprocess.run((need_program("mount"), "-t", "cgroup2", "none", mounted), check=True)
    group = mounted / f"codehub-test-{uuid.uuid4()}"
    group.mkdir()
    yield group
    group.rmdir()
    subprocess.run((need_program("umount"), mounted), check=True)


@pytest.fixture(params=["control groups", "rlimits", "version 2 without controllers"])
async def workspace(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[LocalInstances, WorkspaceId]]:
    need_bubblewrap()
    if request.param == "rlimits":
        monkeypatch.setattr(cgroups, "ROOT", tmp_path / "no cgroups")
    elif request.param == "version 2 without controllers":
        monkeypatch.setattr(cgroups, "ROOT", request.getfixturevalue("empty_hierarchy"))
    LocalRoot.at(tmp_path).prepare()
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await LocalVolumes(tmp_path).provision(workspace_id)
    instances = LocalInstances(tmp_path, ides=IDES, limits=LIMITS, timeouts=PATIENCE)
    await instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    yield instances, workspace_id
    await instances.stop(workspace_id)


async def run_inside(workspace: tuple[LocalInstances, WorkspaceId], program: str) -> object:
    instances, workspace_id = workspace
    words = (sys.executable, "-I", "-S", "-c", program)
    command = "\0".join(words).encode().hex()
    answer = await ask(await instances.find_upstream(workspace_id), workspace_id, f"run/{command}")
    return json.loads(answer.lower())


async def test_processes_are_limited(workspace: tuple[LocalInstances, WorkspaceId]) -> None:
    started = await run_inside(workspace, FORK)
    assert isinstance(started, int)
    assert 10 < started < LIMITS.processes
    instances, workspace_id = workspace
    assert await instances.observe(workspace_id) is ContainerFact.READY


async def test_memory_is_limited_and_the_ide_survives(workspace: tuple[LocalInstances, WorkspaceId]) -> None:
    assert await run_inside(workspace, ALLOCATE) is False
    instances, workspace_id = workspace
    assert await instances.observe(workspace_id) is ContainerFact.READY


async def test_no_control_group_is_left(workspace: tuple[LocalInstances, WorkspaceId]) -> None:
    instances, workspace_id = workspace
    name = cgroups._directory(instances._root.marker(workspace_id))
    await instances.stop(workspace_id)
    assert [parent for parent in cgroups._parents().values() if (parent / name).exists()] == []
