"""`codehub doctor` and the words of `codehub status`."""

import asyncio
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
from codehub.embedded.backend_record import record_backend
from codehub.embedded.data_dir import DataDir
from codehub.settings import load_settings
from tests.stand_in_engine import stand_in_engine


def found(data_dir: Path, **environment: str) -> dict[str, Finding]:
    """On a machine without Docker, unless the environment leads to one."""
    nowhere = f"unix://{data_dir.parent}/none.sock"
    settings = load_settings(
        {"CODEHUB_DATA_DIR": str(data_dir), "CODEHUB_DOCKER_URL": nowhere, **environment}
    )
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
        "homes",
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
    record_backend(DataDir(tmp_path), "local-docker")
    assert found(tmp_path)["Docker"].required


def test_docker_that_is_away_comes_with_a_remedy(tmp_path: Path) -> None:
    docker = found(tmp_path)["Docker"]
    assert (docker.found, docker.detail, docker.remedy) == (False, "Docker does not answer", "start Docker")


async def test_docker_is_shown_with_its_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    images = ("codehub-workspace:latest", "codehub-storage-job:latest")
    async with stand_in_engine(tmp_path / "docker.sock", images[:1]) as engine:
        lacking = await asyncio.to_thread(found, tmp_path, CODEHUB_DOCKER_URL=engine.url)
        engine.images.update(images)
        complete = await asyncio.to_thread(found, tmp_path, CODEHUB_DOCKER_URL=engine.url)
    assert lacking["Docker"] == Finding(
        "Docker", False, f"engine 99.1 without {images[1]}", "`make images` builds it", required=False
    )
    assert complete["Docker"] == Finding(
        "Docker", True, f"engine 99.1 with {images[0]}, {images[1]}", "", required=False
    )
    # Workspaces would run in Docker: nothing else is needed for them.
    assert (lacking["zstd"].required, complete["zstd"].required) == (True, False)


def test_exit_code_says_whether_something_required_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEHUB_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("CODEHUB_WORKSPACES_INSTANCE_BACKEND", "local")
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
