"""`codehub ws network`: the policy of a workspace, and its connections."""

import json

import pytest

from cli.errors import ExitCode
from cli.workspace.network import describe
from codehub.db.egress import LogKey, add_to_log, hour_of
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import Verdict
from codehub.egress_policy import is_enforced
from codehub.settings import load_settings
from codehub.words import NOT_ENFORCED
from tests.cli.harness import CliUser


async def test_the_policy_is_shown_changed_and_reset(ann: CliUser) -> None:
    await ann.create("notes")
    assert "Connects to all public names." in (await ann.run("ws", "network", "notes")).stdout
    changed = await ann.run("ws", "network", "notes", "--allow", "github.com", "--allow", "*.example.org")
    assert "Connects to only these names: *.example.org, github.com." in changed.stdout
    shown = json.loads((await ann.run("ws", "network", "notes", "--json")).stdout)
    assert shown["choice"] == {"mode": "allow-list", "names": ["*.example.org", "github.com"]}
    assert "Connects to nothing." in (await ann.run("ws", "network", "notes", "--mode", "none")).stdout
    reset = json.loads((await ann.run("ws", "network", "notes", "--default", "--json")).stdout)
    assert reset["choice"] is None


async def test_a_name_that_is_none_is_explained(ann: CliUser) -> None:
    await ann.create("notes")
    refused = await ann.run("ws", "network", "notes", "--allow", "127.1")
    assert (refused.exit_code, "is not a name" in refused.stderr) == (ExitCode.USAGE, True)
    both = await ann.run("ws", "network", "notes", "--default", "--mode", "none")
    assert both.exit_code == ExitCode.USAGE


async def test_connections_are_listed(ann: CliUser) -> None:
    workspace_id = WorkspaceId(await ann.create("notes"))
    hour = hour_of(ann.harness.harness.context.now())
    counts = {LogKey(workspace_id, hour, "github.com", 443, Verdict.ALLOWED): 7}
    async with ann.harness.database.transaction() as session:
        await add_to_log(session, counts)
    listed = (await ann.run("ws", "network", "notes", "--log")).stdout
    assert [word in listed for word in ("github.com", "443", "allowed", "7")] == [True] * 4


@pytest.mark.parametrize(
    ("variables", "enforced"),
    [
        ({"WORKSPACES_INSTANCE_BACKEND": "local"}, True),
        ({"WORKSPACES_INSTANCE_BACKEND": "local", "LOCAL_UNSAFE_NO_SANDBOX": "true"}, False),
        ({"WORKSPACES_INSTANCE_BACKEND": "local-docker"}, True),
        ({"WORKSPACES_INSTANCE_BACKEND": "local-docker", "DOCKER_EGRESS": "direct"}, False),
    ],
)
def test_policies_apply_only_behind_the_gateway(variables: dict[str, str], *, enforced: bool) -> None:
    settings = load_settings({f"CODEHUB_{name}": value for name, value in variables.items()})
    assert is_enforced(settings) is enforced


def test_a_policy_that_does_not_apply_is_not_promised() -> None:
    policy = {"enforced": False, "effective": [{"mode": "none", "names": []}]}
    assert list(describe(policy)) == [NOT_ENFORCED]


async def test_administrators_list_the_connections_of_everyone(ann: CliUser, admin: CliUser) -> None:
    workspace_id = WorkspaceId(await ann.create("notes"))
    hour = hour_of(ann.harness.harness.context.now())
    counts = {
        LogKey(workspace_id, hour, "github.com", 443, Verdict.ALLOWED): 7,
        LogKey(workspace_id, hour, "metadata.example", 80, Verdict.REFUSED): 2,
    }
    async with ann.harness.database.transaction() as session:
        await add_to_log(session, counts)
    listed = (await admin.run("admin", "egress", "--workspace", workspace_id)).stdout
    assert [word in listed for word in ("github.com", "metadata.example", "notes")] == [True] * 3
    refused = json.loads((await admin.run("admin", "egress", "--refused", "--json")).stdout)["items"]
    assert [each["name"] for each in refused if each["workspace_id"] == workspace_id] == ["metadata.example"]
