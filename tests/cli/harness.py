"""A CodeHub whose worker uses fake providers, and users of its command line."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from cli.main import app
from codehub.bootstrap import prepare_stores
from codehub.db.session import Database
from codehub.settings import load_settings
from testkit.fake_world import FakeWorld
from testkit.rows import add_workspace
from tests.api.event_harness import relaying
from tests.api.harness import ApiHarness, Person, open_harness, running_worker
from tests.api.process import ApiProcess, running_api
from tests.cli.terminal import Terminal


@dataclass(frozen=True)
class CliHarness:
    """The API as a process, with its database, worker and fake providers."""

    harness: ApiHarness
    api: ApiProcess
    world: FakeWorld

    @property
    def database(self) -> Database:
        return self.harness.context.database

    async def user(self, home: Path, *, admin: bool = False) -> "CliUser":
        person = await self.harness.person(admin=admin)
        with_token, _ = await self.harness.token_client(person)
        token = with_token.headers["authorization"].removeprefix("Bearer ")
        return CliUser(self, person, home, {"CODEHUB_URL": self.api.base_url, "CODEHUB_TOKEN": token})


@dataclass(frozen=True)
class CliUser:
    """A user with an account and a home directory on this machine."""

    harness: CliHarness
    person: Person
    home: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def login_file(self) -> Path:
        return self.home / "config" / "codehub" / "login.json"

    def environment(self, **changed: str) -> dict[str, str]:
        own = {"XDG_CONFIG_HOME": str(self.home / "config"), "CODEHUB_DATA_DIR": str(self.home / "data")}
        return {**own, "COLUMNS": "150", **self.variables, **changed}

    async def run(self, *arguments: str, stdin: str = "", **changed: str) -> Result:
        """Run a command without a terminal, in a thread because it blocks on the API."""
        unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith("CODEHUB_")}
        env = {**unset, **self.environment(**changed)}
        return await asyncio.to_thread(CliRunner().invoke, app, arguments, env=env, input=stdin)

    def terminal(self, *arguments: str, **changed: str) -> Terminal:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CODEHUB_")}
        return Terminal(arguments, {**kept, "TERM": "xterm", **self.environment(**changed)})

    async def create(self, name: str = "home", **columns: Any) -> str:  # noqa: ANN401
        """Add a stopped workspace with these columns, without waking the worker."""
        state = {"phase": "STANDBY", "desired_state": "STANDBY", **columns}
        async with self.harness.database.transaction() as session:
            return await add_workspace(session, self.person.user_id, name=name, **state)

    async def read(self, workspace_id: str) -> dict[str, Any]:
        response = await self.person.client.get(f"{self.person.workspaces}/{workspace_id}")
        assert response.status_code == 200, response.text
        document: dict[str, Any] = response.json()
        return document


@asynccontextmanager
async def open_cli_harness(environment: Mapping[str, str]) -> AsyncIterator[CliHarness]:
    await prepare_stores(load_settings(environment))
    async with open_harness(environment) as opened, running_api(environment) as api:
        harness = opened.with_cheap_passwords()
        async with relaying(harness), running_worker(harness) as world:
            yield CliHarness(harness, api, world)
