"""The workspace's image runs a real IDE under every restriction, in a home that is empty at first."""

import html
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.images.inspection import configuration, labels, programs, shell
from tests.images.running import RunningWorkspace, running_workspace

SESSION = "code-server-session"
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
TOOLS = ("bash", "code-server", "curl", "git", "less", "nano", "node", "npm", "ps", "python3", "ssh", "vi")


@pytest.fixture(scope="module")
async def workspace(workspace_image: str) -> AsyncIterator[RunningWorkspace]:
    async with running_workspace(workspace_image) as running:
        yield running


def test_the_labels_tell_the_backend_how_to_run_the_image(workspace_image: str) -> None:
    found = labels(workspace_image)
    assert {name: value for name, value in found.items() if name.startswith("codehub.io/")} == {
        "codehub.io/ide": "code-server",
        "codehub.io/port": "8080",
        "codehub.io/health-path": "/healthz",
        "codehub.io/keep-prefix": "false",
        "codehub.io/read-only-root": "true",
        "codehub.io/secret-variable": "HASHED_PASSWORD",
        "codehub.io/secret-header": "Cookie: code-server-session={secret}",
        "codehub.io/agent-port": "3129",
        "codehub.io/socket-arguments": "--socket={socket} --socket-mode=666 /home/coder",
    }


def test_the_home_is_empty_and_belongs_to_coder(workspace_image: str) -> None:
    assert shell(workspace_image, "stat -c '%u:%g %a' /home/coder; ls -A /home/coder") == "1000:1000 755"


def test_the_image_has_everyday_tools(workspace_image: str) -> None:
    assert len(programs(workspace_image, *TOOLS)) == len(TOOLS)


def test_the_image_has_a_health_check(workspace_image: str) -> None:
    assert "http://127.0.0.1:8080/healthz" in configuration(workspace_image)["Healthcheck"]["Test"]


async def test_the_ide_runs_as_coder_without_any_capability(workspace: RunningWorkspace) -> None:
    assert workspace.shell("id -u; id -g").split() == ["1000", "1000"]
    status = dict(line.split(":\t") for line in workspace.shell("cat /proc/self/status").splitlines())
    assert int(status["CapBnd"], 16) == int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1"


async def test_the_ide_serves_its_page(workspace: RunningWorkspace) -> None:
    assert "vscode-workbench-web-configuration" in await page_of(workspace)


async def test_the_ide_serves_nobody_without_the_secret(workspace: RunningWorkspace) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        for cookie in ({}, {"Cookie": f"{SESSION}={'0' * 64}"}):
            response = await client.get(f"{workspace.url}/", headers=cookie)
            assert response.headers["location"].startswith("./login")
            terminal = await client.get(f"{workspace.url}/", headers={**WEBSOCKET, **cookie})
            assert terminal.status_code in {401, 403}
        # Nobody knows the password of this hash, and the hash is not the password.
        signed_in = await client.post(f"{workspace.url}/login", data={"password": workspace.secret})
        assert SESSION not in signed_in.cookies


async def test_the_first_page_has_our_defaults(workspace: RunningWorkspace) -> None:
    page = html.unescape(await page_of(workspace))
    _, _, rest = page.partition('"configurationDefaults":')
    defaults, _ = json.JSONDecoder().raw_decode(rest)
    assert defaults["chat.disableAIFeatures"] is True
    assert defaults["telemetry.telemetryLevel"] == "off"
    assert defaults["workbench.startupEditor"] == "none"


async def test_the_home_has_only_what_code_server_creates(workspace: RunningWorkspace) -> None:
    await page_of(workspace)
    assert set(workspace.shell("ls -A ~ ~/.local ~/.local/share").split()) <= {
        *("/home/coder:", "/home/coder/.local:", "/home/coder/.local/share:"),
        *(".local", "share", "code-server", ".cache"),
    }
    assert workspace.shell("find ~ -type s") == ""


async def test_a_terminal_has_a_prompt_and_the_tools(workspace: RunningWorkspace) -> None:
    assert workspace.shell("bash -lic 'command -v node; echo $SHELL' 2>/dev/null").split() == [
        "/opt/node/bin/node",
        "/bin/bash",
    ]
    assert r"\w" in workspace.shell("bash -ic 'echo $PS1' 2>/dev/null")


async def test_programs_in_tmp_can_be_run(workspace: RunningWorkspace) -> None:
    assert workspace.shell("printf '#!/bin/sh\\necho ran' > /tmp/it; chmod +x /tmp/it; /tmp/it") == "ran"


async def page_of(workspace: RunningWorkspace) -> str:
    cookies = {SESSION: workspace.secret}
    async with httpx.AsyncClient(follow_redirects=True, timeout=60, cookies=cookies) as client:
        return (await client.get(f"{workspace.url}/")).raise_for_status().text
