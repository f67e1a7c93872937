"""What an instance can see in its sandbox."""

import json
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from codehub.adapters.local.instance_files import LOCK_NAME
from codehub.domain.conditions import WorkspaceId
from codehub.ports import InstanceRequest
from testkit.fakes import IMAGE
from testkit.needs import need_bubblewrap
from tests.contracts.instance_harness import LocalHarness, ask

Lister = Callable[[str], Awaitable[list[str] | None]]
OWN, OTHER = WorkspaceId(str(uuid.uuid4())), WorkspaceId(str(uuid.uuid4()))


@pytest.fixture(autouse=True)
def _bubblewrap() -> None:
    need_bubblewrap()


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[LocalHarness]:
    harness = LocalHarness(tmp_path, sandboxed=True)
    await harness.volumes.provision(OWN)
    await harness.volumes.provision(OTHER)
    yield harness
    await harness.clean_up()


@pytest.fixture
async def list_inside(harness: LocalHarness) -> Lister:
    """Return what the instance sees in a directory, or None if it does not see the directory."""
    await harness.instances.start(InstanceRequest(OWN, IMAGE), lambda _: None)
    upstream = await harness.instances.find_upstream(OWN)

    async def list_inside(path: str) -> list[str] | None:
        answer: list[str] | None = json.loads(await ask(upstream, OWN, f"list{path}"))
        return answer

    return list_inside


async def test_the_home_is_the_volume(harness: LocalHarness, list_inside: Lister) -> None:
    (harness.root.volume(OWN) / "thesis").touch()
    assert await list_inside("/home/coder") == ["thesis"]
    assert await list_inside("/home") == ["coder"]


async def test_other_homes_and_codehub_s_data_are_hidden(harness: LocalHarness, list_inside: Lister) -> None:
    assert await list_inside(str(harness.root.volume(OTHER))) is None
    assert await list_inside(str(harness.root.path)) is None
    assert await list_inside(str(harness.root.instance(OWN))) is None


async def test_it_sees_only_its_own_processes(list_inside: Lister) -> None:
    processes = [name for name in await list_inside("/proc") or [] if name.isdecimal()]
    # The sandbox's own, the agent and the IDE; the agent's thread takes a number too.
    assert processes == ["1", "2", "4"]


async def test_it_has_its_own_temporary_directory(list_inside: Lister) -> None:
    with tempfile.NamedTemporaryFile(dir="/tmp") as ours:
        inside = await list_inside("/tmp")  # noqa: S108 (the one inside)
    assert inside is not None
    assert Path(ours.name).name not in inside
    # Only the path to what the IDE needs, if that is below it.
    needed = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__))
    assert set(inside) <= {path.parts[2] for path in needed if path.is_relative_to("/tmp")}  # noqa: S108


async def test_passwords_and_host_keys_are_hidden(list_inside: Lister) -> None:
    configuration = await list_inside("/etc")
    assert configuration is not None
    assert "passwd" in configuration
    assert not {"shadow", "gshadow", "ssh", "sudoers"} & set(configuration)


async def test_only_the_sandbox_holds_the_alive_lock(harness: LocalHarness, list_inside: Lister) -> None:
    """A process inside could release the lock, and the instance would count as dead."""
    lock = harness.root.instance(OWN) / LOCK_NAME
    assert await list_inside("/home/coder") == []
    holders = [pid for pid in harness.pids(OWN) if holds(pid, lock)]
    inner = [pid for pid in harness.pids(OWN) if "bwrap" not in psutil.Process(pid).name()]
    assert len(holders) == 1
    assert inner
    assert not set(holders) & set(inner)


def holds(pid: int, file: Path) -> bool:
    descriptors = [descriptor for descriptor in Path(f"/proc/{pid}/fd").iterdir() if descriptor.exists()]
    return any(descriptor.samefile(file) for descriptor in descriptors)
