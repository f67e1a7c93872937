"""A real JupyterLab on a plain-http host name, where browsers do not say where requests come from."""

import socket
from pathlib import Path
from typing import Any

import pytest

from testkit.processes import free_port
from tests.e2e.browser import open_tab, running_browser, wait_for_file
from tests.e2e.harness import HOUR_SECONDS, running_codehub

pytestmark = pytest.mark.timeout(600)

DOMAIN = ".test"
RESOLVER_RULES = f"--host-resolver-rules=MAP *{DOMAIN} 127.0.0.1"


@pytest.fixture
def _names_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client of the tests find these names, as Chromium does."""
    look_up = socket.getaddrinfo

    def look_up_here(host: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        name = host.decode() if isinstance(host, bytes) else host
        return look_up("127.0.0.1" if name and name.endswith(DOMAIN) else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up_here)


@pytest.mark.usefixtures("_names_of_this_machine")
async def test_ide_files_and_terminal_work(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "CODEHUB_PROXY_PORT": str(port),
        "CODEHUB_PUBLIC_BASE_URL": f"http://hub{DOMAIN}:{port}",
        "CODEHUB_WORKSPACES_DOMAIN": f"spaces{DOMAIN}",
    }
    async with (
        running_codehub(tmp_path / "codehub", settings=settings) as (person, deployment),
        running_browser(RESOLVER_RULES) as browser,
        person.workspace(standby_ttl_seconds=HOUR_SECONDS) as workspace_id,
        open_tab(browser, person) as tab,
    ):
        await tab.visit(workspace_id)
        await tab.wait_for_ide()
        await tab.write_file("notes.txt", "typed in Chromium")
        await wait_for_file(deployment.home(workspace_id) / "notes.txt", "typed in Chromium")
        await tab.open_terminal()
        await tab.type("echo $((6*7)) > answer.txt\n")
        await wait_for_file(deployment.home(workspace_id) / "answer.txt", "42\n")
        # Chromium complains that plain http cannot isolate windows; nothing else is refused.
        assert [each for each in tab.errors if "Cross-Origin-Opener-Policy" not in each] == []
