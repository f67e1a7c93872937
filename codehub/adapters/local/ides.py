"""The IDEs that are installed on this machine: the image_refs of the local backend."""

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
    """How to run an IDE. Texts can contain {id}, {token}, {home} and {private}, its own directory.

    The agent inside the instance fills in {socket}, where the IDE must listen.
    """

    command: tuple[str, ...]
    health_path: str
    keep_prefix: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    headers: Headers = ()
    # Paths that it needs besides the system directories.
    visible: tuple[Path, ...] = ()
    # Added to the command inside a sandbox.
    sandboxed_options: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaunchValues:
    """The values for the placeholders of an IDE."""

    workspace_id: WorkspaceId
    token: str = field(repr=False)
    home: str = ""
    private: str = ""

    def fill(self, text: str) -> str:
        # Not str.format: paths can contain braces.
        for name, value in (
            ("{id}", self.workspace_id),
            ("{token}", self.token),
            ("{home}", self.home),
            ("{private}", self.private),
        ):
            text = text.replace(name, value)
        return text

    def fill_headers(self, headers: Headers) -> Headers:
        return tuple((name, self.fill(value)) for name, value in headers)


def jupyterlab(base_path: str = "/") -> Ide:
    """JupyterLab from CodeHub's virtual environment. Its token keeps other local users out."""
    options = (
        "--no-browser",
        "--ServerApp.sock={socket}",
        f"--ServerApp.base_url={base_path}",
        "--ServerApp.root_dir={home}",
        # This only affects the check of the Host header, which has the public address behind the proxy.
        "--ServerApp.allow_remote_access=True",
        "--ServerApp.quit_button=False",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        # Autodetection runs npm and leaves files in every home.
        "--LanguageServerManager.autodetect=False",
        *(("--allow-root",) if os.geteuid() == 0 else ()),
    )
    return Ide(
        # Without -P, modules next to the program would hide those of the standard library.
        command=(sys.executable, "-P", str(RUN_JUPYTERLAB), *options),
        health_path=f"{base_path}api/status",
        keep_prefix=True,
        environment={"JUPYTER_TOKEN": "{token}", "JUPYTER_RUNTIME_DIR": "{private}/jupyter"},
        headers=(("Authorization", "token {token}"),),
        visible=(Path(sys.prefix), Path(sys.base_prefix), RUN_JUPYTERLAB),
        # Other users could reach kernels over TCP. Outside a sandbox, the socket path can be too long.
        sandboxed_options=("--KernelManager.transport=ipc",),
    )


def code_server(program: Path) -> Ide:
    """code-server, which needs no base path: all its links are relative."""
    options = (
        "--socket={socket}",
        "--auth=password",
        "--disable-telemetry",
        "--disable-update-check",
        "--disable-workspace-trust",
        "{home}",
    )
    return Ide(
        command=(str(program.resolve()), *options),
        health_path="/healthz",
        keep_prefix=False,
        # Nobody knows the password: code-server also accepts its hash as the session cookie.
        environment={"HASHED_PASSWORD": "{token}"},
        headers=(("Cookie", "code-server-session={token}"),),
        visible=_installation_of(program),
    )


def _installation_of(program: Path) -> tuple[Path, ...]:
    """Return the package of a program and its Node. Nothing more: both can be inside a person's home."""
    package = next((each for each in program.resolve().parents if (each / "package.json").exists()), None)
    node = shutil.which("node")
    return (package or program.resolve(), *((Path(node).resolve(),) if node else ()))


def installed_ides(base_path: str = "/") -> dict[str, Ide]:
    """Return the installed IDEs by name, the default first. The base path can contain {id}."""
    ides = {}
    if program := shutil.which("code-server"):
        ides["code-server"] = code_server(Path(program))
    if importlib.util.find_spec("jupyterlab"):
        ides["jupyterlab"] = jupyterlab(base_path)
    return ides


def resolve_ide(ides: Mapping[str, Ide], image_ref: str) -> str:
    """Return the name of the requested IDE; an empty image_ref or `default` means the first."""
    if image_ref in ides:
        return image_ref
    if image_ref in {"", "default"} and ides:
        return next(iter(ides))
    allowed = (
        ", ".join(["default", *ides]) if ides else "none is installed; install jupyterlab or code-server"
    )
    raise Permanent(
        ErrorReason.IMAGE_PULL_FAILED,
        f"The IDE {image_ref!r} is not installed on this machine; available: {allowed}.",
    )
