"""A CodeHub whose worker acts on a fake world, and people who use it from a command line."""

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
    """The API as a process, and everything behind it."""

    harness: ApiHarness
    api: ApiProcess
    world: FakeWorld

    @property
    def database(self) -> Database:
        return self.harness.context.database

    async def somebody(self, home: Path, *, admin: bool = False) -> "Somebody":
        person = await self.harness.person(admin=admin)
        with_token, _ = await self.harness.token_client(person)
        token = with_token.headers["authorization"].removeprefix("Bearer ")
        return Somebody(self, person, home, {"CODEHUB_URL": self.api.base_url, "CODEHUB_TOKEN": token})


@dataclass(frozen=True)
class Somebody:
    """A person with an account, and a home directory on this machine."""

    harness: CliHarness
    person: Person
    home: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def login_file(self) -> Path:
        return self.home / "config" / "codehub" / "login.json"

    def environment(self, **changed: str) -> dict[str, str]:
        ours = {"XDG_CONFIG_HOME": str(self.home / "config"), "CODEHUB_DATA_DIR": str(self.home / "data")}
        return {**ours, "COLUMNS": "150", **self.variables, **changed}

    async def run(self, *arguments: str, stdin: str = "", **changed: str) -> Result:
        """In this process, without a terminal; in a thread, because it waits for an API of ours."""
        unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith("CODEHUB_")}
        env = {**unset, **self.environment(**changed)}
        return await asyncio.to_thread(CliRunner().invoke, app, arguments, env=env, input=stdin)

    def terminal(self, *arguments: str, **changed: str) -> Terminal:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CODEHUB_")}
        return Terminal(arguments, {**kept, "TERM": "xterm", **self.environment(**changed)})

    async def create(self, name: str = "home", **columns: Any) -> str:  # noqa: ANN401
        """A workspace that nobody has told the worker about; it is stopped, unless told otherwise."""
        state = {"phase": "STANDBY", "desired_state": "STANDBY", **columns}
        async with self.harness.database.transaction() as session:
            return await add_workspace(session, self.person.user_id, name=name, **state)

    async def read(self, workspace_id: str) -> dict[str, Any]:
        answer = await self.person.client.get(f"{self.person.workspaces}/{workspace_id}")
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document


@asynccontextmanager
async def open_cli_harness(environment: Mapping[str, str]) -> AsyncIterator[CliHarness]:
    await prepare_stores(load_settings(environment))
    async with open_harness(environment) as opened, running_api(environment) as api:
        harness = opened.with_cheap_passwords()
        async with relaying(harness), running_worker(harness) as world:
            yield CliHarness(harness, api, world)
