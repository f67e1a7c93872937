"""The IDEs that this machine can run: what an image_ref may name on the local backend."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Permanent
from codehub.domain.states import ErrorReason
from codehub.health import Headers

RUN_JUPYTERLAB = Path(__file__).with_name("run_jupyterlab.py")


@dataclass(frozen=True)
class Ide:
    """How to run an IDE. Texts may name {id}, {port}, {token}, {home} and {private}, its own directory."""

    command: tuple[str, ...]
    health_path: str
    keep_prefix: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    headers: Headers = ()
    # What of this machine it needs to see, beside the system's own directories.
    visible: tuple[Path, ...] = ()
    # What to add to the command where it has a sandbox around it.
    sandboxed_options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launch:
    """What fills the gaps in an IDE's description."""

    workspace_id: WorkspaceId
    port: int
    token: str = field(repr=False)
    home: str = ""
    private: str = ""

    def fill(self, text: str) -> str:
        # Not str.format: paths may contain braces.
        for name, value in (
            ("{id}", self.workspace_id),
            ("{port}", str(self.port)),
            ("{token}", self.token),
            ("{home}", self.home),
            ("{private}", self.private),
        ):
            text = text.replace(name, value)
        return text

    def fill_headers(self, headers: Headers) -> Headers:
        return tuple((name, self.fill(value)) for name, value in headers)


def jupyterlab() -> Ide:
    """JupyterLab out of our own environment; the token keeps neighbours on the loopback interface out."""
    options = (
        "--no-browser",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port={port}",
        # Another port than the recorded one would never be found.
        "--ServerApp.port_retries=0",
        "--ServerApp.base_url=/w/{id}/",
        "--ServerApp.root_dir={home}",
        # Checks the Host header only, which behind the proxy is that of the public address.
        "--ServerApp.allow_remote_access=True",
        "--ServerApp.quit_button=False",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        # It would run npm, and leave its files in every home.
        "--LanguageServerManager.autodetect=False",
        *(("--allow-root",) if os.geteuid() == 0 else ()),
    )
    return Ide(
        # Without -P, modules beside the program would hide those of the standard library.
        command=(sys.executable, "-P", str(RUN_JUPYTERLAB), *options),
        health_path="/w/{id}/api/status",
        keep_prefix=True,
        environment={"JUPYTER_TOKEN": "{token}", "JUPYTER_RUNTIME_DIR": "{private}/jupyter"},
        headers=(("Authorization", "token {token}"),),
        visible=(Path(sys.prefix), Path(sys.base_prefix), RUN_JUPYTERLAB),
        # Neighbours could listen to kernels on the loopback interface. Elsewhere the path may be too long.
        sandboxed_options=("--KernelManager.transport=ipc",),
    )


def code_server(program: Path) -> Ide:
    """code-server behind a proxy that strips the prefix."""
    options = (
        "--bind-addr=127.0.0.1:{port}",
        "--auth=none",
        "--disable-telemetry",
        "--disable-update-check",
        "--disable-workspace-trust",
        "{home}",
    )
    return Ide(
        command=(str(program.resolve()), *options),
        health_path="/healthz",
        keep_prefix=False,
        visible=_installation_of(program),
    )


def _installation_of(program: Path) -> tuple[Path, ...]:
    """The package of a program on PATH, and the Node that runs it: no more, for they may be in a home."""
    package = next((each for each in program.resolve().parents if (each / "package.json").exists()), None)
    node = shutil.which("node")
    return (package or program.resolve(), *((Path(node).resolve(),) if node else ()))


def installed_ides() -> dict[str, Ide]:
    """What is installed here; the first one is the default."""
    ides = {}
    if program := shutil.which("code-server"):
        ides["code-server"] = code_server(Path(program))
    if importlib.util.find_spec("jupyterlab"):
        ides["jupyterlab"] = jupyterlab()
    return ides


def choose(ides: Mapping[str, Ide], image_ref: str) -> str:
    """The name of the IDE that an image_ref asks for; none, or `default`, means the first."""
    if image_ref in ides:
        return image_ref
    if image_ref in {"", "default"} and ides:
        return next(iter(ides))
    allowed = (
        ", ".join(["default", *ides]) if ides else "none is installed; install jupyterlab or code-server"
    )
    raise Permanent(
        ErrorReason.IMAGE_PULL_FAILED,
        f"There is no IDE {image_ref!r} on this machine; what can be asked for: {allowed}.",
    )
