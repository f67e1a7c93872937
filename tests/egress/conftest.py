"""A gateway as its own process in a small internet, on a real database."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from codehub.db.session import Database, create_engine
from testkit import postgres
from testkit.internet import Internet, running_internet
from testkit.processes import kill, spawn
from testkit.service_process import inherited_environment
from testkit.waiting import until
from tests.egress.clients import KEY, Client, new_workspace


@dataclass(frozen=True)
class RunningGateway:
    """A running `python -m egress`."""

    socket: Path
    database: Database
    database_url: str
    log: Path

    async def client(self) -> Client:
        """Return a client of a new workspace."""
        return Client(self.socket, await new_workspace(self.database))


@pytest.fixture(scope="session")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Internet]:
    with running_internet(tmp_path_factory.mktemp("internet")) as running:
        yield running


@asynccontextmanager
async def running_gateway(
    internet: Internet, database_url: str, **settings: str
) -> AsyncIterator[RunningGateway]:
    with TemporaryDirectory(prefix="codehub-egress-") as text:
        directory = Path(text)
        environment = {
            **inherited_environment(),
            "CODEHUB_DATABASE_URL": database_url,
            "CODEHUB_DATA_DIR": text,
            "CODEHUB_EGRESS_KEY": KEY,
            "CODEHUB_EGRESS_READY_FILE": str(directory / "ready"),
            "CODEHUB_EGRESS_REFRESH_SECONDS": "1",
            **{f"CODEHUB_EGRESS_{name.upper()}": value for name, value in settings.items()},
        }
        process = spawn(internet.at_gateway((sys.executable, "-m", "egress")), directory / "log", environment)
        try:

            async def decided() -> bool:
                return (directory / "ready").exists() or process.poll() is not None

            await until(decided, "the gateway is ready")
            assert process.poll() is None, (directory / "log").read_text()
            async with Database(create_engine(database_url)) as database:
                yield RunningGateway(
                    directory / "run" / "egress" / "gateway.sock", database, database_url, directory / "log"
                )
        finally:
            await asyncio.to_thread(kill, process)


@pytest.fixture(scope="package")
async def shared_database_url(postgres_server: postgres.Server, migrated_template: str) -> AsyncIterator[str]:
    async with postgres.new_database(postgres_server, migrated_template) as url:
        yield url


@pytest.fixture(scope="package")
async def gateway(internet: Internet, shared_database_url: str) -> AsyncIterator[RunningGateway]:
    """Return a gateway with the default settings; each test makes its own workspace."""
    async with running_gateway(internet, shared_database_url) as running:
        yield running
