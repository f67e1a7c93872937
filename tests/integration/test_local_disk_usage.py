"""Measuring a home, whatever its owner does to hide how large it is."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codehub.adapters.local.disk_usage import PROGRAM, measure_directories
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.volumes import LocalVolumes, remove_tree
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Measurement
from testkit.ordinary_user import UID, as_ordinary_user

MIB = 1024 * 1024
# More than any run takes that is not broken.
PATIENCE = 60.0
SLACK = MIB // 2
WORKSPACE = WorkspaceId("6f1d3c52-58f4-4a07-9f4e-3a3d4ad7d2f1")
MEASURE = """
import asyncio, sys
from pathlib import Path
from codehub.adapters.local.disk_usage import measure_directories
found = asyncio.run(measure_directories([Path(sys.argv[1])], 60))
print(found.used_bytes, found.complete)
"""


async def measure(path: Path, seconds: float = PATIENCE) -> Measurement:
    return await measure_directories([path], seconds)


def write(path: Path, size: int = MIB) -> None:
    path.write_bytes(b"x" * size)


async def test_files_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for place in (".", "a", "a/b"):
        write(tmp_path / place / "file")
    found = await measure(tmp_path)
    assert found.complete
    assert 3 * MIB <= found.used_bytes < 3 * MIB + SLACK


async def test_a_sparse_file_takes_what_is_written(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1024 * MIB)
        file.write(b"x" * MIB)
    assert MIB <= (await measure(tmp_path)).used_bytes < MIB + SLACK


async def test_a_file_with_many_names_counts_once(tmp_path: Path) -> None:
    write(tmp_path / "file")
    (tmp_path / "below").mkdir()
    for number in range(30):
        (tmp_path / "below" / str(number)).hardlink_to(tmp_path / "file")
    assert MIB - SLACK <= (await measure(tmp_path)).used_bytes < MIB + SLACK


async def test_links_are_not_followed(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    write(outside / "file", 4 * MIB)
    (home / "directory").symlink_to(outside)
    (home / "file").symlink_to(outside / "file")
    (home / "loop").symlink_to(home)
    found = await measure(home)
    assert found.complete
    assert found.used_bytes < SLACK


async def test_a_file_below_thousands_of_directories_is_found(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    file = os.open("hidden", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
    os.write(file, b"x" * (8 * MIB))
    os.close(file)
    os.close(descriptor)
    found = await measure(tmp_path)
    remove_tree(tmp_path / "d")
    assert found.complete
    # On some file systems a directory takes a block too.
    assert found.used_bytes >= 8 * MIB


async def test_time_is_bounded_and_the_result_says_so(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / str(number)).touch()
    found = await measure(tmp_path, seconds=0)
    assert not found.complete
    assert found.used_bytes < MIB


async def test_a_home_that_changes_all_the_time_is_measured(tmp_path: Path) -> None:
    write(tmp_path / "kept", 4 * MIB)
    churn = (
        "import os, sys\\n"
        "os.chdir(sys.argv[1])\\n"
        "print('ready', flush=True)\\n"
        "while True:\\n"
        "    os.makedirs('a/b/c', exist_ok=True)\\n"
        "    open('a/b/c/f', 'ab').write(b'x' * 4096)\\n"
        "    os.rename('a/b', 'moved')\\n"
        "    os.unlink('moved/c/f'); os.removedirs('moved/c'); os.rmdir('a')\\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", churn.replace("\\n", "\n"), tmp_path, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        for _ in range(5):
            assert 4 * MIB <= (await measure(tmp_path)).used_bytes < 5 * MIB
    finally:
        process.kill()
        await process.wait()


@pytest.fixture
def home_of_a_user() -> Iterator[Path]:
    """A home of an ordinary user, who has closed a directory to everybody."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        home, closed = Path(name, "home"), Path(name, "home", "closed")
        closed.mkdir(parents=True)
        write(closed / "file", 4 * MIB)
        Path(name).chmod(0o755)
        for path in (closed / "file", closed, home):
            os.chown(path, UID, UID)
        closed.chmod(0)
        yield home
        closed.chmod(0o700)


def run_as_user(*command: str) -> str:
    root = Path(__file__).parents[2]
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(root)}
    run = subprocess.run(
        as_ordinary_user(command), env=environment, cwd=root, check=True, capture_output=True, text=True
    )
    return run.stdout


def test_a_closed_directory_hides_nothing_from_an_ordinary_user(home_of_a_user: Path) -> None:
    used, complete = run_as_user(sys.executable, "-c", MEASURE, str(home_of_a_user)).split()
    assert int(used) >= 4 * MIB
    assert complete == "True"


def test_without_a_user_namespace_it_would(home_of_a_user: Path) -> None:
    output = run_as_user(sys.executable, "-I", "-S", str(PROGRAM), "60", str(home_of_a_user))
    found = json.loads(output)
    assert found["used_bytes"] < MIB
    assert found["complete"] is False


async def test_what_an_instance_writes_beside_its_home_counts(tmp_path: Path) -> None:
    root, volumes = LocalRoot.at(tmp_path), LocalVolumes(tmp_path)
    root.prepare()
    assert await volumes.measure(WORKSPACE, PATIENCE) is None
    await volumes.provision(WORKSPACE)
    (root.instance(WORKSPACE) / "sockets").mkdir(parents=True)
    write(root.instance(WORKSPACE) / "sockets" / "dump")
    found = await volumes.measure(WORKSPACE, PATIENCE)
    assert found is not None
    assert found.used_bytes >= MIB
