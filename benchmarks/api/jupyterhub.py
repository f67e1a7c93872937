"""JupyterHub beside us: installed for the benchmark alone, as it comes, with a user per workspace of ours."""

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.api.load_generator import Refused, Target, ask_for
from benchmarks.api.population import child
from codehub.embedded.free_ports import choose_ports
from testkit.waiting import until

# Its own database (SQLite) and everything else as it comes, but no proxy in front: that one needs Node, and
# we ask the hub itself. The spawner and the authenticator are those that need no preparation.
CONFIGURATION = """
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    should_start = False
    async def add_route(self, routespec, target, data): pass
    async def delete_route(self, routespec): pass
    async def get_all_routes(self): return {{}}

c = get_config()
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.hub_port = {port}
c.JupyterHub.services = [{{"name": "benchmark", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [{{"name": "admin", "services": ["benchmark"]}}]
"""
# Written as the hub itself would; by itself it would give each user a role in a transaction of its own.
FILLING = """
from jupyterhub import orm, roles
from sqlalchemy import insert

with orm.new_session_factory("sqlite:///jupyterhub.sqlite")() as session:
    for role in roles.get_default_roles():
        roles.create_role(session, role)
    role_id = orm.Role.find(session, "user").id
    numbers = range(1, {users} + 1)
    session.execute(insert(orm.User.__table__), [{{"id": n, "name": f"user-{{n:05}}"}} for n in numbers])
    role_map = orm.Base.metadata.tables["user_role_map"]
    session.execute(insert(role_map), [{{"user_id": n, "role_id": role_id}} for n in numbers])
    session.commit()
"""
PAGINATION = "application/jupyterhub-pagination+json"


class CannotInstall(Exception):
    """It could not be had here; the message says why."""


@dataclass(frozen=True)
class JupyterHub:
    """A hub that answers."""

    pid: int
    port: int
    version: str
    headers: dict[str, str]

    def target(self, path: str) -> Target:
        return Target(self.port, f"/hub/api{path}", self.headers)


@asynccontextmanager
async def jupyterhub(directory: Path, users: int) -> AsyncIterator[JupyterHub]:
    """A hub in this empty directory, or CannotInstall."""
    python = await asyncio.to_thread(_install, directory)
    version = await asyncio.to_thread(_run, directory, python, "-m", "jupyterhub", "--version")
    await asyncio.to_thread(_run, directory, python, "-c", FILLING.format(users=users))
    port, token = choose_ports(["hub"], {})["hub"], secrets.token_hex(16)
    configuration = directory / "jupyterhub_config.py"
    configuration.write_text(CONFIGURATION.format(port=port, token=token))
    command = (python, "-m", "jupyterhub", "-f", str(configuration))
    headers = {"Authorization": f"token {token}", "Accept": PAGINATION}
    with child(command, _environment(), directory / "hub.log") as process:
        hub = JupyterHub(process.pid, port, version.strip(), headers)

        async def answers() -> bool:
            if process.poll() is not None:
                raise CannotInstall(f"JupyterHub ended with status {process.returncode}")
            try:
                await ask_for(hub.target("/"), 1, 0)
            except (OSError, Refused):
                return False
            return True

        await until(answers, "JupyterHub answers")
        yield hub


def _install(directory: Path) -> str:
    uv, python = Path(sys.executable).with_name("uv"), directory / "venv" / "bin" / "python"
    _run(directory, str(uv), "venv", "--quiet", "--python", sys.executable, str(directory / "venv"))
    _run(directory, str(uv), "pip", "install", "--quiet", "--python", str(python), "jupyterhub")
    return str(python)


def _run(directory: Path, *command: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 (our own command)
            command,
            cwd=directory,
            env=_environment(),
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise CannotInstall(f"JupyterHub cannot be had here: {reason.strip()[-300:]}") from error
    return done.stdout


def _environment() -> dict[str, str]:
    """Nothing of ours: no virtual environment, no settings."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("CODEHUB_", "VIRTUAL_"))
    }
