"""The real servers that the chaos tests share."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codehub.embedded.stack import EmbeddedStack
from codehub.settings import Settings
from testkit.deployment import BIN, make_template


@dataclass(frozen=True)
class Servers:
    """PostgreSQL, Redis, S3 and Temporal, and a migrated database to clone."""

    stack: EmbeddedStack
    template: str


@pytest.fixture(scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Servers]:
    async with EmbeddedStack(tmp_path_factory.mktemp("stack"), Settings()) as stack:
        yield Servers(stack, await make_template(stack.environment["CODEHUB_DATABASE_URL"]))


@pytest.fixture(autouse=True)
def tiny_ide(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the tiny code-server on the PATH of this process too, because its workers start instances."""
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    return BIN
