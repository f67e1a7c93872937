"""M1's database and homes, and the command that imports them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from codehub.db.session import connect
from testkit.trees import Description, describe_tree
from tests.buckets import Bucket
from tests.codehub_command import CommandRun, run_codehub
from tests.m1.import_process import start_import
from tests.m1.leftovers import fill_database, make_homes


@dataclass(frozen=True)
class M1Deployment:
    """M1's database and homes, and the settings for importing them into CodeHub."""

    url: str
    bucket: Bucket
    directory: Path
    homes: dict[str, Path]
    environment: dict[str, str]

    async def import_homes(self, *arguments: str, **environment: str) -> CommandRun:
        command = ("migrate", "--import-homes", str(self.directory), *arguments)
        return await run_codehub(self.environment | environment, *command)

    async def keep_only(self, *statuses: str) -> None:
        """Drop the other workspaces, whose import would only cost time."""
        await self.execute("DELETE FROM workspaces WHERE status <> ALL($1)", statuses)

    @contextmanager
    def importing(self) -> Iterator[ForkServerProcess]:
        """Yield the command while it runs, and kill it afterwards."""
        process = start_import(self.directory, self.environment)
        try:
            yield process
        finally:
            process.kill()
            process.join()

    async def rows(self) -> dict[str, dict[str, Any]]:
        """Return the workspaces by their status in M1."""
        connection = await connect(self.url)
        try:
            found = await connection.fetch("SELECT * FROM workspaces")
        finally:
            await connection.close()
        return {row["name"].upper(): dict(row) for row in found}

    async def execute(self, statement: str, *arguments: object) -> None:
        connection = await connect(self.url)
        await connection.execute(statement, *arguments)
        await connection.close()

    def descriptions(self) -> dict[str, Description]:
        return {status: describe_tree(home) for status, home in self.homes.items()}

    @property
    def root(self) -> Path:
        return Path(self.environment["CODEHUB_DATA_DIR"]) / "local"

    @classmethod
    async def create(cls, url: str, bucket: Bucket, parent: Path) -> "M1Deployment":
        """Create M1's tables in an empty database, and its homes below `parent`."""
        await fill_database(url)
        kept = ("PATH", "HOME", "LANG", "TMPDIR")
        environment = {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "CODEHUB_DATABASE_URL": url,
            "CODEHUB_S3_ENDPOINT_URL": bucket.server.endpoint_url,
            "CODEHUB_S3_ACCESS_KEY": bucket.server.access_key,
            "CODEHUB_S3_SECRET_KEY": bucket.server.secret_key,
            "CODEHUB_S3_BUCKET": bucket.name,
            "CODEHUB_DATA_DIR": str(parent / "data"),
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local",
        }
        return cls(url, bucket, parent / "m1", make_homes(parent / "m1"), environment)
