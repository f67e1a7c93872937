"""Vite's development server in a workspace: a change appears in the open page without a reload."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from testkit.deployment import Deployment
from testkit.needs import need_program
from tests.e2e.browser import Tab
from tests.e2e.harness import HOUR_SECONDS, Person

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
PORT = 5173
# On loopback only, which is Vite's default.
SERVER = f"cd app && node node_modules/vite/bin/vite.js --strictPort --port {PORT} &\n"
PAGE = '<p id="shown"></p><script type="module" src="/main.js"></script>'
SCRIPT = """
import { text } from './text.js';
const show = (text) => { document.querySelector('#shown').textContent = text; };
show(text);
import.meta.hot.accept('./text.js', (changed) => show(changed.text));
"""


def make_project(home: Path) -> None:
    """Create a project with Vite in a home, owned like the home."""
    app, packages = home / "app", home / "app" / "node_modules"
    app.mkdir()
    (app / "index.html").write_text(PAGE)
    (app / "main.js").write_text(SCRIPT)
    (app / "text.js").write_text("export const text = 'before';")
    for name in installed_packages("vite"):
        shutil.copytree(ROOT / "node_modules" / name, packages / name)
    owner = home.stat()
    for path in (app, *app.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def installed_packages(name: str) -> set[str]:
    """Return a package and all that it needs, as far as npm has installed them for this platform."""
    package = ROOT / "node_modules" / name / "package.json"
    if not package.exists():
        return set()
    described = json.loads(package.read_text())
    needed = {**described.get("dependencies", {}), **described.get("optionalDependencies", {})}
    return {name}.union(*map(installed_packages, needed))


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    """Fetch the packages of the scripts, which Vite is one of; a full run has them already."""
    need_program("npm")
    make = shutil.which("make") or "make"
    subprocess.run((make, "--silent", "node_modules/.synced"), cwd=ROOT, check=True, timeout=300)


async def test_a_change_appears_without_a_reload(
    person: Person, deployment: Deployment, browser: Browser, tab: Tab
) -> None:
    async with person.workspace(standby_ttl_seconds=HOUR_SECONDS) as workspace_id:
        await tab.visit(workspace_id)
        await tab.wait_for_ide()
        home = deployment.home(workspace_id)
        make_project(home)
        await tab.open_terminal()
        await tab.type(SERVER)
        page = await tab.page.context.new_page()
        await page.goto(f"{person.url}/workspaces/{workspace_id}")
        link = page.get_by_role("link", name=f"Open port {PORT}")
        async with page.expect_popup() as opening:
            await link.click()
        opened = await opening.value
        await expect(opened.locator("#shown")).to_have_text("before")
        await opened.evaluate("window.loaded = 'once'")
        (home / "app" / "text.js").write_text("export const text = 'after';")
        await expect(opened.locator("#shown")).to_have_text("after")
        assert await opened.evaluate("window.loaded") == "once", "the page was reloaded"
        # It reloads itself when it loses its server; during the stop that would start the workspace again.
        await opened.close()
