"""`make env` generates random passwords that only the owner can read."""

import re
import subprocess
import sys
from pathlib import Path

from tests.deploy.programs import ROOT, run

SECRET = re.compile(r"^(\w+_(?:PASSWORD|KEY))=(.*)$", re.MULTILINE)


def make_env(target: Path) -> "subprocess.CompletedProcess[str]":
    return run(sys.executable, "deploy/make_env.py", str(target))


def test_every_secret_is_generated(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert make_env(tmp_path / name).returncode == 0
    one, two = (dict(SECRET.findall((tmp_path / name).read_text())) for name in ("one", "two"))
    assert len(one) == 7
    assert len({*one.values(), *two.values()}) == 14
    assert all(re.fullmatch(r"[0-9a-f]{48}", value) for value in one.values())


def test_everything_else_comes_from_the_example(tmp_path: Path) -> None:
    make_env(tmp_path / "env")
    assert SECRET.sub(r"\1=", (tmp_path / "env").read_text()) == (ROOT / ".env.example").read_text()


def test_the_example_has_no_secret() -> None:
    assert {value for _, value in SECRET.findall((ROOT / ".env.example").read_text())} == {""}


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    make_env(tmp_path / "env")
    assert (tmp_path / "env").stat().st_mode & 0o777 == 0o600


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("POSTGRES_PASSWORD=mine\n")
    again = make_env(tmp_path / "env")
    assert again.returncode == 1
    assert "already exists" in again.stderr
    assert (tmp_path / "env").read_text() == "POSTGRES_PASSWORD=mine\n"
