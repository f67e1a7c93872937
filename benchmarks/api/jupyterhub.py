"""JupyterHub with its default settings, and one user for each of CodeHub's workspaces."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.api.load_generator import BadResponse, Target, send_requests
from benchmarks.peers import Unavailable, clean_environment, create_virtual_environment, run
from benchmarks.servers import background_process
from codehub.embedded.free_ports import choose_ports
from testkit.waiting import until

# Default settings, also for the database (SQLite), but without a proxy: the proxy needs Node, and requests go
# to the hub directly. The spawner and the authenticator are those that need no preparation.
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
# Same rows as the hub itself would write, but faster: it adds each user's role in a separate transaction.
ADD_USERS = """
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


@dataclass(frozen=True)
class JupyterHub:
    """A running hub."""

    pid: int
    port: int
    version: str
    headers: dict[str, str]

    def target(self, path: str) -> Target:
        return Target(self.port, f"/hub/api{path}", self.headers)


@asynccontextmanager
async def jupyterhub(directory: Path, users: int) -> AsyncIterator[JupyterHub]:
    """Run a hub in this empty directory; raise Unavailable if it cannot be installed."""
    python = await create_virtual_environment(directory, "jupyterhub")
    version = await run(python, "-m", "jupyterhub", "--version")
    await run(python, "-c", ADD_USERS.format(users=users), directory=directory)
    port, token = choose_ports(["hub"], {})["hub"], secrets.token_hex(16)
    configuration = directory / "jupyterhub_config.py"
    configuration.write_text(CONFIGURATION.format(port=port, token=token))
    command = (python, "-m", "jupyterhub", "-f", str(configuration))
    headers = {"Authorization": f"token {token}", "Accept": PAGINATION}
    with background_process(command, clean_environment(), directory / "hub.log") as process:
        hub = JupyterHub(process.pid, port, version, headers)

        async def is_ready() -> bool:
            if process.poll() is not None:
                raise Unavailable(f"JupyterHub exited with status {process.returncode}")
            try:
                await send_requests(hub.target("/"), 1, 0)
            except (OSError, BadResponse):
                return False
            return True

        await until(is_ready, "JupyterHub is ready")
        yield hub
