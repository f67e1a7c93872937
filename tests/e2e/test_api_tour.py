"""Run the lines of docs/api.md as a reader would paste them."""

import asyncio
import os
import re
from pathlib import Path

import pytest

from testkit.needs import need_program
from testkit.waiting import until
from tests.e2e.harness import API_URL, PASSWORD, READY, codehub_up

TOUR = Path(__file__).parents[2] / "docs" / "api.md"
LINES = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.timeout(600)
async def test_every_line_of_the_tour_works(tmp_path: Path) -> None:
    need_program("curl")
    with codehub_up(tmp_path / "codehub") as said:

        async def ready() -> bool:
            return READY in said.read_text()

        await until(ready, "codehub up says that it is ready")
        password, url = PASSWORD.search(said.read_text()), API_URL.search(said.read_text())
        assert password is not None
        assert url is not None
        script = "set -eu\n" + "".join(LINES.findall(TOUR.read_text()))
        environment = {**os.environ, "CODEHUB": url[1], "PASSWORD": password[1]}
        shell = await asyncio.create_subprocess_exec(
            "bash",
            "-x",
            "-c",
            script,
            cwd=tmp_path,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await shell.communicate()
    assert shell.returncode == 0, output.decode() + errors.decode()
    for sign in ("event: snapshot", '"phase":"ARCHIVED"', '"memo":"Seen by the tour"', '"purge":false'):
        assert sign in output.decode()
