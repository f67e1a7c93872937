"""The dashboard of `codehub up` in a real browser."""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from playwright.async_api import Browser, expect

from codehub.adapters.s3.client import open_client
from codehub.bootstrap import archive_store_of
from codehub.db.snapshots import save_observation
from codehub.domain.conditions import Condition, Reason, Snapshot, Status, WorkspaceId
from testkit.deployment import Deployment
from tests.api.workspace_rows import halt_deletion
from tests.e2e.browser import PATIENCE, Tab, wait_for_file
from tests.e2e.dashboard import Dashboard, add_user, open_dashboard
from tests.e2e.harness import Person

pytestmark = pytest.mark.timeout(600)

# Progress is published once a second, so archiving must take a few seconds.
PIECE_BYTES = 20_000_000
PIECES = 30
DIARY = "It was a calm day."


@pytest.fixture
async def dashboard(browser: Browser, person: Person) -> AsyncIterator[Dashboard]:
    """Return the dashboard of a new user who has signed in."""
    async with open_dashboard(browser, person.url, await add_user(person)) as opened:
        await opened.sign_in()
        yield opened


def write_large_file(path: Path) -> None:
    """Write a file that zstd cannot compress: it repeats only at distances beyond its window."""
    piece = os.urandom(PIECE_BYTES)
    with path.open("wb") as file:
        for _ in range(PIECES):
            file.write(piece)


RECORD_TEXTS = """figures => {
  window.texts = [];
  new MutationObserver(() => texts.push(figures.textContent)).observe(figures, { childList: true });
}"""


async def record_progress_texts(dashboard: Dashboard, name: str) -> None:
    """Record every text of the progress bar from now on; some are shown only for a second."""
    await dashboard.row(name).locator(".figures").evaluate(RECORD_TEXTS)


async def recorded_texts(dashboard: Dashboard, pattern: str) -> list[str]:
    texts: list[str] = await dashboard.page.evaluate("texts")
    return [each for each in texts if re.match(pattern, each)]


async def test_workspace_is_created_opened_stopped_archived_restored_and_deleted(
    dashboard: Dashboard, person: Person, deployment: Deployment
) -> None:
    page = dashboard.page
    await expect(page.get_by_role("heading", name="Create your first workspace")).to_be_visible()
    workspace_id = await dashboard.create("notes")
    await dashboard.expect_badge("notes", "Running")
    await expect(dashboard.row("notes").locator(".next")).to_have_text(re.compile("^Stops tomorrow"))
    async with page.expect_popup() as opening:
        await dashboard.press("notes", "Open")
    ide = await opening.value
    tab = Tab(ide, person.url)
    await tab.wait_for_ide()
    await tab.write_file("diary.txt", DIARY)
    await wait_for_file(deployment.home(workspace_id) / "diary.txt", DIARY)
    await ide.close()
    await dashboard.press("notes", "Stop")
    await dashboard.expect_badge("notes", "Stopped")
    write_large_file(deployment.home(workspace_id) / "reads.bin")
    await record_progress_texts(dashboard, "notes")
    await dashboard.choose("notes", "Archive")
    await dashboard.expect_badge("notes", "Archived")
    assert await recorded_texts(dashboard, r"\d+ MB")
    assert not deployment.home(workspace_id).exists()
    await expect(dashboard.row("notes").locator(".facts")).to_contain_text("Archive 600 MB")
    await dashboard.choose("notes", "Restore without starting")
    await dashboard.expect_badge("notes", "Stopped")
    assert (deployment.home(workspace_id) / "reads.bin").stat().st_size == PIECES * PIECE_BYTES
    assert (deployment.home(workspace_id) / "diary.txt").read_text() == DIARY
    await delete_and_undelete(dashboard)
    assert dashboard.errors == []


async def delete_and_undelete(dashboard: Dashboard) -> None:
    await dashboard.choose("notes", "Delete…")
    confirm = dashboard.page.get_by_role("button", name="Delete", exact=True)
    await confirm.click()
    await expect(dashboard.page.get_by_text("This is not the name of the workspace.")).to_be_visible()
    await dashboard.page.get_by_label("Type “notes” to confirm").fill("notes")
    await confirm.click()
    await expect(dashboard.row("notes")).to_have_count(0, timeout=PATIENCE)
    await dashboard.page.get_by_text("Recently deleted (1)").click()
    await dashboard.page.get_by_label("Undelete notes").click()
    await dashboard.expect_badge("notes", "Archived")
    await dashboard.delete("notes")
    await expect(dashboard.row("notes")).to_have_count(0, timeout=PATIENCE)


@asynccontextmanager
async def observed_again_and_again(deployment: Deployment, snapshot: Snapshot) -> AsyncIterator[None]:
    """Store an observation; repeat it, because the real worker also observes and corrects it."""

    async def save() -> None:
        while True:
            async with deployment.database.transaction() as session:
                await save_observation(session, snapshot, datetime.now(UTC))
            await asyncio.sleep(0.1)

    saving = asyncio.create_task(save())
    try:
        yield
    finally:
        saving.cancel()
        await asyncio.gather(saving, return_exceptions=True)


async def test_a_changed_configuration_appears_at_once_in_the_list_and_on_the_page(
    dashboard: Dashboard, deployment: Deployment
) -> None:
    workspace_id = await dashboard.create("notes", start=False)
    await dashboard.expect_badge("notes", "Stopped")
    row = await deployment.look(workspace_id)
    outdated = Condition(Status.FALSE, Reason.OUTDATED, "Restart to apply: image, memory.", datetime.now(UTC))
    conditions = replace(row.conditions, configuration_current=outdated)
    text = re.compile("^Restart to apply: image, memory. ")
    async with observed_again_and_again(deployment, replace(row, conditions=conditions)):
        await expect(dashboard.row("notes").locator(".next")).to_have_text(text, timeout=PATIENCE)
        await dashboard.page.locator("a.name").click()
        await expect(dashboard.page.locator(".next")).to_have_text(text)
        await expect(dashboard.page.locator(".conditions")).to_contain_text(outdated.message)
    assert dashboard.errors == []


async def test_another_user_sees_nothing_of_a_workspace(
    dashboard: Dashboard, browser: Browser, person: Person
) -> None:
    workspace_id = await dashboard.create("secret-plans", start=False)
    await dashboard.expect_badge("secret-plans", "Stopped")
    async with open_dashboard(browser, person.url, await add_user(person)) as other:
        await other.sign_in()
        await expect(other.page.get_by_role("heading", name="Create your first workspace")).to_be_visible()
        await expect(other.page.get_by_text("secret-plans")).to_have_count(0)
        await expect(other.page.get_by_role("link", name="Admin")).to_have_count(0)
        await other.page.goto(f"/workspaces/{workspace_id}")
        await expect(other.page.get_by_text("This workspace belongs to another user.")).to_be_visible()
        await expect(other.page.get_by_text("secret-plans")).to_have_count(0)


async def test_a_page_reports_a_lost_connection_and_continues_after_the_api_restarts(
    dashboard: Dashboard, deployment: Deployment
) -> None:
    await dashboard.create("before", start=False)
    await dashboard.expect_badge("before", "Stopped")
    api_process_of(deployment).kill()
    await expect(dashboard.page.locator("#connection")).to_contain_text("Reconnecting", timeout=PATIENCE)
    await expect(dashboard.page.locator("#connection")).to_be_empty(timeout=PATIENCE)
    dashboard.errors.clear()
    await dashboard.create("after", start=False)
    await dashboard.expect_badge("after", "Stopped")
    assert dashboard.errors == []


def api_process_of(deployment: Deployment) -> psutil.Process:
    data_dir = str(deployment.settings.general.data_dir)
    for process in psutil.process_iter():
        try:
            if process.cmdline()[-2:] == ["-m", "api"] and process.environ()["CODEHUB_DATA_DIR"] == data_dir:
                return process
        except (psutil.Error, KeyError):
            continue
    raise AssertionError("no API process")


async def test_lost_files_are_explained_and_the_last_archive_is_restored(
    dashboard: Dashboard, deployment: Deployment
) -> None:
    workspace_id = await dashboard.create("thesis", start=False)
    await dashboard.expect_badge("thesis", "Stopped")
    (deployment.home(workspace_id) / "chapter.txt").write_text("from before")
    await dashboard.choose("thesis", "Archive")
    await dashboard.expect_badge("thesis", "Archived")
    await dashboard.choose("thesis", "Restore without starting")
    await dashboard.expect_badge("thesis", "Stopped")
    shutil.rmtree(deployment.home(workspace_id))
    await dashboard.expect_badge("thesis", "Failed")
    await dashboard.row("thesis").get_by_role("link", name="thesis").click()
    await restore_archive(dashboard, deployment, workspace_id)
    assert dashboard.errors == []


async def restore_archive(dashboard: Dashboard, deployment: Deployment, workspace_id: WorkspaceId) -> None:
    page = dashboard.page
    await expect(page.get_by_role("heading", name="Files are missing")).to_be_visible()
    await expect(page.get_by_text("An older version of your files is in the archive")).to_be_visible()
    assert await page.locator(".choice").count() == 3
    choice = page.locator("[data-choice=restore_archive]")
    await expect(choice).to_contain_text("The home will not have files newer than the archive")
    restore = choice.get_by_role("button", name="Restore this archive")
    await expect(restore).to_be_disabled()
    await expect(choice.get_by_role("radio")).to_be_checked()
    await choice.get_by_label("I understand what this means.").check()
    await restore.click()
    await expect(page.locator("main > .state .badge")).to_have_text("Stopped", timeout=PATIENCE)
    assert (deployment.home(workspace_id) / "chapter.txt").read_text() == "from before"
    await expect(page.locator(".timeline")).to_contain_text("asked to recover it: Restore this archive")


async def test_an_older_archive_replaces_a_damaged_one(dashboard: Dashboard, deployment: Deployment) -> None:
    workspace_id = await dashboard.create("thesis", start=False)
    for text in ("old", "new"):
        await dashboard.expect_badge("thesis", "Stopped")
        (deployment.home(workspace_id) / "chapter.txt").write_text(text)
        await dashboard.choose("thesis", "Archive")
        await dashboard.expect_badge("thesis", "Archived")
        if text == "old":
            await dashboard.choose("thesis", "Restore without starting")
    await damage(deployment, (await deployment.look(workspace_id)).archive_key or "")
    await dashboard.choose("thesis", "Restore without starting")
    await dashboard.expect_badge("thesis", "Failed")
    await dashboard.press("thesis", "Recover")
    dialog = dashboard.page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading", name="thesis: the archive is damaged")).to_be_visible()
    choice = dialog.locator("[data-choice=restore_archive]")
    await expect(choice).to_contain_text("verified today")
    await choice.get_by_role("radio").check()
    await choice.get_by_label("I understand what this means.").check()
    await choice.get_by_role("button", name="Restore this archive").click()
    await dashboard.expect_badge("thesis", "Stopped")
    assert (deployment.home(workspace_id) / "chapter.txt").read_text() == "old"
    assert dashboard.errors == []


async def damage(deployment: Deployment, key: str) -> None:
    """Overwrite a committed archive."""
    store = archive_store_of(deployment.settings)
    async with open_client(store) as s3:
        await s3.put_object(Bucket=store.bucket, Key=key, Body=b"not an archive")


async def test_a_failed_deletion_can_be_undone_or_finished_for_good(
    dashboard: Dashboard, deployment: Deployment
) -> None:
    page = dashboard.page
    workspace_id = await dashboard.create("thesis", start=False)
    await dashboard.expect_badge("thesis", "Stopped")
    await halt_deletion(deployment.database, workspace_id)
    await dashboard.expect_badge("thesis", "Failed")
    await expect(dashboard.row("thesis")).to_contain_text("It could not be deleted")
    await page.goto(f"/w/{workspace_id}/")
    await expect(page.get_by_role("heading", name="It could not be deleted")).to_be_visible()
    await page.goto(f"/workspaces/{workspace_id}")
    await expect(page.get_by_role("heading", name="It could not be deleted")).to_be_visible()
    ways = [await each.get_attribute("data-choice") for each in await page.locator(".choice").all()]
    assert ways == ["retry", "keep", "purge"]
    purge = page.locator("[data-choice=purge]")
    await purge.get_by_label("I understand what this means.").check()
    await purge.get_by_role("button", name="Delete for good").click()
    await expect(page.get_by_role("heading", name="This workspace was deleted")).to_be_visible(
        timeout=PATIENCE
    )
    assert not deployment.home(workspace_id).exists()
    # The proxy's page is a 502, which Chromium logs as an error.
    assert [each for each in dashboard.errors if "502" not in each] == []


async def test_stopping_a_workspace_in_the_limit_dialog_starts_the_new_one(dashboard: Dashboard) -> None:
    page = dashboard.page
    await dashboard.create("one")
    await dashboard.create("two")
    await dashboard.expect_badge("one", "Running")
    await dashboard.page.locator("#create").click()
    await page.get_by_label("Name", exact=True).fill("three")
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page.get_by_role("heading", name="You have reached your limit")).to_be_visible()
    await page.get_by_label("Stop one", exact=True).last.click()
    await dashboard.expect_badge("three", "Running")
    await dashboard.expect_badge("one", "Stopped")
    # Their IDEs would otherwise keep running.
    for name in ("two", "three"):
        await dashboard.expect_badge(name, "Running")
        await dashboard.press(name, "Stop")
        await dashboard.expect_badge(name, "Stopped")
