"""What every adversarial test starts with: real S3, and a volume with old content beside a secret."""

from pathlib import Path

import pytest

from tests.fixtures_s3 import bucket, s3_server

__all__ = ["bucket", "s3_server"]


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "old").write_text("old")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "volume"
