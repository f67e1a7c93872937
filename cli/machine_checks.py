"""Checks of what local workspaces need on this machine, for `codehub doctor` and `codehub up`."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from codehub.adapters.local.ides import installed_ides
from codehub.adapters.local.sandbox import NoSandbox, require_bubblewrap, require_hidden
from codehub.providers import local_root_of, local_uids_of
from codehub.settings import Settings

COMMAND_SECONDS = 60


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    name: str
    found: bool
    detail: str
    remedy: str = ""
    required: bool = True


def local_findings(settings: Settings, *, required: bool) -> Iterator[Finding]:
    yield _tar(required=required)
    yield _storage_job(required=required)
    yield _ide(required=required)
    yield _sandbox(settings, required=required and not settings.local.unsafe_no_sandbox)


def _tar(*, required: bool) -> Finding:
    remedy = "apt-get install tar"
    path = shutil.which("tar")
    if path is None:
        return Finding("tar", False, "not found", remedy, required)
    version = _run(path, "--version").partition("\n")[0]
    return Finding("tar", "GNU tar" in version, version, remedy, required)


def _storage_job(*, required: bool) -> Finding:
    """Start the job: that fails if the compression library is missing or does not fit this machine."""
    works = bool(_run(sys.executable, "-m", "storage_job", "--help"))
    detail = "archives and restores homes" if works else "does not start"
    remedy = f"reinstall CodeHub; `{sys.executable} -m storage_job --help` shows the error"
    return Finding("storage job", works, detail, remedy, required)


def _ide(*, required: bool) -> Finding:
    if path := shutil.which("code-server"):
        return Finding("web IDE", True, f"code-server ({path})")
    if importlib.util.find_spec("jupyterlab"):
        return Finding("web IDE", True, "JupyterLab")
    remedy = "pip install jupyterlab, or put code-server on PATH"
    return Finding("web IDE", False, "neither code-server nor JupyterLab", remedy, required)


def _sandbox(settings: Settings, *, required: bool) -> Finding:
    # As for an instance: root gives each workspace a user of its own.
    uids = local_uids_of(settings) if os.geteuid() == 0 else None
    visible = [path for ide in installed_ides().values() for path in ide.visible]
    try:
        require_hidden(local_root_of(settings).resolve(), visible, uids)
        return Finding("sandbox", True, require_bubblewrap(uids), required=required)
    except NoSandbox as error:
        return Finding("sandbox", False, "none works", str(error).rstrip("."), required)


def _run(path: str, *arguments: str) -> str:
    """Return the program's output, or nothing if it fails."""
    try:
        result = subprocess.run(  # noqa: S603 (a program on the user's PATH)
            (path, *arguments), check=True, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout
