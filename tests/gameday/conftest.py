"""One stage for all tests; each test leaves it in working order."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gameday.stage.stage import Stage, open_stage


@pytest.fixture(scope="package")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    directory: Path = tmp_path_factory.mktemp("stage")
    async with open_stage(directory, "local", users=2) as opened:
        yield opened
