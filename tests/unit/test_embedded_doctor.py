"""`codehub doctor` and the words of `codehub status`."""

import io
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.doctor import Finding, examine, render
from cli.main import app
from cli.status import describe_duration
from codehub.settings import load_settings


def found(data_dir: Path, **environment: str) -> dict[str, Finding]:
    settings = load_settings({"CODEHUB_DATA_DIR": str(data_dir), **environment})
    return {finding.name: finding for finding in examine(settings)}


def test_doctor_looks_at_everything_that_matters(tmp_path: Path) -> None:
    assert list(found(tmp_path / "not there yet")) == [
        "Python",
        "data directory",
        "disk space",
        "ports",
        "embedded servers",
        "tar",
        "zstd",
        "web IDE",
        "bubblewrap",
        "Docker",
    ]
    assert not (tmp_path / "not there yet").exists()


def test_what_is_missing_comes_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    findings = found(tmp_path)
    assert (findings["zstd"].found, findings["zstd"].required) == (False, True)
    assert not findings["bubblewrap"].required
    output = io.StringIO()
    Console(file=output, width=200).print(render(list(findings.values())))
    assert "apt-get install zstd" in output.getvalue()
    assert "apt-get install bubblewrap" in output.getvalue()


def test_docker_is_required_only_for_its_backend(tmp_path: Path) -> None:
    assert not found(tmp_path)["Docker"].required
    findings = found(tmp_path, CODEHUB_WORKSPACES_INSTANCE_BACKEND="local-docker")
    assert findings["Docker"].required
    assert not findings["zstd"].required


def test_exit_code_says_whether_something_required_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEHUB_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    result = CliRunner().invoke(app, ["doctor"])
    assert (result.exit_code, "missing" in result.output) == (1, True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.0 s"),
        (0.84, "0.8 s"),
        (59, "59 s"),
        (302, "5 min 2 s"),
        (3700, "1 h 1 min"),
        (280000, "3 d 5 h"),
    ],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert describe_duration(timedelta(seconds=seconds)) == text
