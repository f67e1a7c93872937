"""Files of the data directory: private if they hold secrets, written atomically, with rotated logs."""

import json
import stat
from pathlib import Path

import pytest

from codehub.embedded.child_process import last_lines, rotate
from codehub.embedded.data_dir import DamagedCredentials, DataDir, load_or_create_credentials, read_json
from codehub.embedded.state import AlreadyRunning, is_locked, lock_data_dir, read_running_stack, write_state


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    directory = DataDir(tmp_path / "data")
    directory.create()
    return directory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_credentials_are_created_once_and_only_their_owner_can_read_them(data: DataDir) -> None:
    credentials = load_or_create_credentials(data.credentials)
    assert mode(data.credentials) == 0o600
    assert mode(data.root) == 0o700
    assert load_or_create_credentials(data.credentials) == credentials
    assert len(set(json.loads(data.credentials.read_text()).values())) == 5


def test_credentials_have_no_readable_repr(data: DataDir) -> None:
    credentials = load_or_create_credentials(data.credentials)
    assert credentials.database_password not in repr(credentials)


def test_damaged_credentials_are_not_replaced(data: DataDir) -> None:
    data.credentials.write_text("{}{")
    with pytest.raises(DamagedCredentials, match="backup"):
        load_or_create_credentials(data.credentials)
    assert data.credentials.read_text() == "{}{"


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_damaged_json_counts_as_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    assert read_json(tmp_path / "x.json") == {}


def test_the_last_logs_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "redis.log"
    for number in range(6):
        rotate(log)
        log.write_text(f"run {number}")
    kept = [f"{log.name}: {log.read_text()}" for log in sorted(tmp_path.iterdir())]
    assert kept == ["redis.log: run 5", "redis.log.1: run 4", "redis.log.2: run 3", "redis.log.3: run 2"]
    assert mode(log) == 0o600


def test_the_last_lines_of_a_log_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("\n".join(f"{'line':>100} {number}" for number in range(1000)))
    assert [line.split()[1] for line in last_lines(log, 2)] == ["998", "999"]
    assert last_lines(tmp_path / "missing.log", 2) == []


def test_only_one_process_holds_the_data_directory(data: DataDir) -> None:
    with lock_data_dir(data):
        assert is_locked(data)
        with pytest.raises(AlreadyRunning, match=str(data.root)), lock_data_dir(data):
            pass
    assert not is_locked(data)


def test_the_state_of_a_dead_process_is_ignored(data: DataDir) -> None:
    write_state(data, [], {})
    assert read_running_stack(data) is None
    with lock_data_dir(data):
        running = read_running_stack(data)
        assert running is not None
        assert running.supervisor() is not None
        # Another process has the id now.
        content = json.loads(data.state.read_text())
        data.state.write_text(json.dumps({**content, "started": content["started"] - 60}))
        assert read_running_stack(data) is None
