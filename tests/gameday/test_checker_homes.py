"""The check of homes on a real stage."""

import hashlib

import httpx
import pytest

from codehub.domain.conditions import WorkspaceId
from gameday.checks.api import WORKSPACES, ApiClient
from gameday.checks.findings import Findings, Invariant
from gameday.checks.homes import check_homes
from gameday.people.journal import Journal
from gameday.stage.stage import Stage
from gameday.stage.tiny_ide import FILES
from testkit.waiting import DEADLINE_SECONDS

CONTENT = b"acknowledged"


async def _create(stage: Stage) -> WorkspaceId:
    headers = {"Authorization": f"Bearer {stage.users[0].token}"}
    form = {"name": "checked", "desired_state": "ARCHIVED"}
    async with httpx.AsyncClient(base_url=stage.url, headers=headers, timeout=DEADLINE_SECONDS) as client:
        response = await client.post(WORKSPACES, json=form)
    assert response.is_success, response.text
    return WorkspaceId(response.json()["id"])


async def _check(stage: Stage, journal: Journal, workspace_id: WorkspaceId) -> list[str]:
    """Return the problems of this workspace; earlier tests may have left others."""
    findings = Findings(stage.clock)
    api = ApiClient(stage)
    try:
        await check_homes(stage, api, journal, findings, DEADLINE_SECONDS)
    finally:
        await api.close()
    assert findings.checked[Invariant.FILES]
    return [each.words for each in findings.violations if each.workspace_id == workspace_id]


@pytest.mark.timeout(600)
async def test_a_home_must_have_the_acknowledged_files_and_no_others(stage: Stage) -> None:
    workspace_id, journal = await _create(stage), Journal()
    digest = hashlib.sha256(CONTENT).hexdigest()
    journal.acknowledge(journal.begin(workspace_id, "notes.txt", None, digest))
    [missing] = await _check(stage, journal, workspace_id)
    assert missing.startswith("notes.txt is missing")

    files = (await stage.home(workspace_id)) / FILES
    files.mkdir()
    (files / "notes.txt").write_bytes(CONTENT)
    assert await _check(stage, journal, workspace_id) == []

    (files / "stranger.txt").write_bytes(CONTENT)
    assert await _check(stage, journal, workspace_id) == ["nobody wrote stranger.txt"]
