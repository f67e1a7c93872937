"""A volume with old content, next to a directory that no job may touch."""

from pathlib import Path

import pytest


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "old").write_text("old")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "volume"
