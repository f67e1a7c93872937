"""The log of an instance has a limited size, and its last part can be read."""

import os
import uuid
from pathlib import Path

import pytest

from codehub.adapters.local.instance_files import Log
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.root import LocalRoot
from codehub.domain.conditions import WorkspaceId


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path, limit_bytes=20)


def append(log: Log, content: bytes) -> None:
    descriptor = log.open()
    os.write(descriptor, content)
    os.close(descriptor)


def test_a_long_log_is_rotated_while_it_is_written(log: Log) -> None:
    descriptor = log.open()
    for number in range(4):
        os.write(descriptor, f"{number}".encode() * 25 + b"\n")
        log.rotate()
    os.write(descriptor, b"end\n")
    os.close(descriptor)
    contents = {path.name: path.read_bytes() for path in log.directory.iterdir()}
    assert contents == {
        "output.log": b"end\n",
        "output.log.1": b"3" * 19 + b"\n",
        "output.log.2": b"2" * 19 + b"\n",
    }


def test_a_short_log_is_left_alone(log: Log) -> None:
    append(log, b"short\n")
    log.rotate()
    assert [path.name for path in log.directory.iterdir()] == ["output.log"]


def test_the_tail_reaches_back_into_older_parts(log: Log) -> None:
    append(log, b"one\ntwo\nthree\nfour\nfive\n")
    log.rotate()
    append(log, b"six\n")
    assert log.tail(3) == (b"four\nfive\nsix\n", 4)
    assert log.tail(0) == (b"", 4)


def test_reading_after_a_rotation_starts_over(log: Log) -> None:
    append(log, b"a rather long first line\n")
    _, offset = log.tail(10)
    assert log.read_since(offset) == (b"", offset)
    log.rotate()
    append(log, b"next\n")
    assert log.read_since(offset) == (b"next\n", 5)


def test_a_missing_log_is_empty(log: Log) -> None:
    log.rotate()
    assert log.tail(10) == (b"", 0)
    assert log.read_since(7) == (b"", 0)


async def test_listing_all_instances_rotates_their_logs(tmp_path: Path) -> None:
    root = LocalRoot.at(tmp_path)
    root.prepare()
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    root.instance(workspace_id).mkdir()
    log = Log(root.instance(workspace_id))
    append(log, b"x" * 100)
    await LocalInstances(tmp_path, ides={}, log_limit_bytes=50).list_all()
    assert log.path.stat().st_size == 0
