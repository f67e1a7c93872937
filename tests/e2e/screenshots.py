"""Take the screenshots of the documentation: `make screenshots`."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, Page, ViewportSize, expect

from codehub.domain.conditions import WorkspaceId
from codehub.origins import PLAIN_COOKIE
from testkit.deployment import Deployment
from testkit.waiting import until
from tests.e2e.browser import PATIENCE, Tab, running_browser
from tests.e2e.dashboard import PASSWORD, Scheme
from tests.e2e.harness import WORKSPACES, Person, running_codehub, sign_in

DIRECTORY = Path(__file__).parents[2] / "docs" / "screenshots"
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
HEIGHTS = {
    "sign-in": 800,
    "list": 800,
    "create": 800,
    "workspace": 900,
    "error": 1000,
    "account": 1000,
    "admin": 1000,
}
# Use of a workspace shows up at once.
QUICK_TO_NOTICE = {"CODEHUB_SWEEPS_TTL_SECONDS": "3", "CODEHUB_PROXY_ACTIVITY_SECONDS": "1"}
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"
PHONE: ViewportSize = {"width": 360, "height": 740}
WIDTH = 1280
# Archiving it takes long enough for all pictures of the list.
LARGE_BYTES = 900_000_000
NOTES = """# Chapter three

- [x] Load the measurements
- [ ] Plot **figure 7** with `plot.py`

See [the data](https://example.org/data) first.
"""


@dataclass(frozen=True)
class Scene:
    """The workspaces of the pictures."""

    thesis: WorkspaceId
    genome: WorkspaceId
    website: WorkspaceId
    survey: WorkspaceId
    compiler: WorkspaceId


async def take_all() -> None:
    with tempfile.TemporaryDirectory() as directory:
        data_dir = Path(directory) / "codehub"
        async with (
            running_codehub(data_dir, settings=QUICK_TO_NOTICE) as (admin, deployment),
            running_browser() as browser,
        ):
            person = await add_people(admin)
            async with person.client:
                await take_pictures(browser, person, deployment)


async def add_people(admin: Person) -> Person:
    """Add some users and return the first, an administrator who has signed in with a browser."""
    for name, role in {"ada": "admin", "grace": "user", "linus": "user"}.items():
        form = {"username": name, "password": PASSWORD, "role": role}
        await admin.client.post("/api/v1/admin/users", json=form)
    return Person(admin.url, await sign_in(admin.url, "ada", PASSWORD, BROWSER))


async def take_pictures(browser: Browser, person: Person, deployment: Deployment) -> None:
    scene = await set_up(person, deployment)
    await use_ide(browser, person, scene.thesis)
    await take_list(browser, person, scene)
    await take_other_pages(browser, person, scene)
    await take_proxy_pages(browser, person, scene)
    for workspace_id in (scene.thesis, scene.website):
        await person.move_to(workspace_id, "STANDBY")


async def set_up(person: Person, deployment: Deployment) -> Scene:
    scene = Scene(
        thesis=await create(person, "thesis-notebooks", "Experiments for chapter three"),
        genome=await create(person, "genome-browser", "Large files, handle with care"),
        website=await create(person, "website", "Landing page and blog"),
        survey=await create(person, "survey-analysis", "Questionnaires of spring and autumn"),
        compiler=await create(person, "compiler", "The new parser"),
    )
    await person.client.patch(f"{WORKSPACES}/{scene.thesis}", json={"memo": NOTES})
    write_random(deployment.home(scene.compiler) / "parser.bin", 48_000_000)
    write_random(deployment.home(scene.survey) / "answers.csv", 3_100_000)
    write_random(deployment.home(scene.genome) / "reads.bin", LARGE_BYTES)
    await person.move_to(scene.compiler, "ARCHIVED")
    for state in ("ARCHIVED", "STANDBY"):
        await person.move_to(scene.survey, state)
    shutil.rmtree(deployment.home(scene.survey))
    await until(lambda: has_failed(person, scene.survey), "the lost files are noticed")
    scratch = await create(person, "scratch", "Nothing of importance")
    await person.client.delete(f"{WORKSPACES}/{scratch}")
    await person.move_to(scene.thesis, "RUNNING")
    return scene


async def create(person: Person, name: str, description: str) -> WorkspaceId:
    """Create a stopped workspace."""
    form = {"name": name, "description": description, "image_ref": "jupyterlab", "desired_state": "STANDBY"}
    created = await person.client.post(WORKSPACES, json=form)
    workspace_id = WorkspaceId(created.json()["id"])
    await person.move_to(workspace_id, "STANDBY")
    return workspace_id


def write_random(path: Path, size: int) -> None:
    path.write_bytes(os.urandom(size))


async def has_failed(person: Person, workspace_id: WorkspaceId) -> bool:
    return bool((await person.read(workspace_id))["needs_person"])


async def use_ide(browser: Browser, person: Person, workspace_id: WorkspaceId) -> None:
    async with window(browser, person) as page:
        tab = Tab(page, person.url)
        await tab.visit(workspace_id)
        await tab.wait_for_ide()
        await tab.write_file("plot.py", "print('figure 7')")

    async def is_noticed() -> bool:
        return (await person.read(workspace_id))["last_access_at"] is not None

    await until(is_noticed, "the use of the IDE is noticed")


async def take_list(browser: Browser, person: Person, scene: Scene) -> None:
    """Take the list in all variants while a workspace is being archived."""
    variants = [(scheme, phone) for scheme in SCHEMES for phone in (False, True)]
    windows = [window(browser, person, scheme, "list", phone=phone) for scheme, phone in variants]
    pages = [await each.__aenter__() for each in windows]
    for page in pages:
        await page.goto(person.url)
    await person.client.patch(f"{WORKSPACES}/{scene.genome}", json={"desired_state": "ARCHIVED"})
    for page, (scheme, phone) in zip(pages, variants, strict=True):
        figures = page.locator(f"[data-id='{scene.genome}'] .figures")
        await expect(figures).to_contain_text("MB/s", timeout=PATIENCE)
        await save(page, f"dashboard-list-{scheme}-{'phone' if phone else 'desktop'}")
    for each in windows:
        await each.__aexit__(None, None, None)
    await person.move_to(scene.genome, "ARCHIVED")


async def take_other_pages(browser: Browser, person: Person, scene: Scene) -> None:
    for scheme in SCHEMES:
        for phone in (False, True):
            for name in HEIGHTS:
                if name == "list":
                    continue
                signed_in = name != "sign-in"
                async with window(browser, person, scheme, name, phone=phone, signed_in=signed_in) as page:
                    await open_page(page, person, scene, name)
                    await save(page, f"dashboard-{name}-{scheme}-{'phone' if phone else 'desktop'}")


async def open_page(page: Page, person: Person, scene: Scene, name: str) -> None:
    paths = {
        "sign-in": "/login",
        "create": "/",
        "workspace": f"/workspaces/{scene.thesis}",
        "error": f"/workspaces/{scene.survey}",
        "account": "/account",
        "admin": "/admin",
    }
    await page.goto(person.url + paths[name])
    await page.locator(".plain-list li, .rows li, .sign-in").first.wait_for(state="attached")
    if name == "create":
        await page.locator("#create").click()
        await page.get_by_label("Name", exact=True).fill("robot-arm")
        await page.get_by_text("JupyterLab").wait_for(state="attached")
    if name == "workspace":
        await page.locator(".timeline details").first.click()
        await page.locator(".steps li").first.wait_for()
    await page.wait_for_timeout(1000)


async def take_proxy_pages(browser: Browser, person: Person, scene: Scene) -> None:
    async with window(browser, person, "dark") as page:
        await page.goto(f"{person.url}/w/{scene.compiler}/")
        await save(page, "proxy-restore-needed-dark")
        await page.goto(f"{person.url}/w/{scene.website}/")
        await page.get_by_role("heading", name="Starting your workspace").wait_for()
        await page.wait_for_timeout(1000)
        await save(page, "proxy-starting-dark")
        await Tab(page, person.url).wait_for_ide()
    async with window(browser, person) as page:
        await page.goto(f"{person.url}/w/{scene.survey}/")
        await page.screenshot(path=DIRECTORY / "proxy-error-light.png", full_page=True)
        await page.goto(f"{person.url}/w/{scene.compiler}/")
        await page.get_by_role("button", name="Restore and open").click()
        await page.get_by_role("heading", name="You have reached your limit").wait_for()
        await save(page, "proxy-limit-light")
        await person.move_to(scene.website, "STANDBY")
        await page.goto(f"{person.url}/w/{scene.genome}/")
        await page.get_by_role("button", name="Restore and open").click()
        await expect(page.locator(".figures")).to_contain_text("MB/s", timeout=PATIENCE)
        await save(page, "proxy-restoring-light")
        await Tab(page, person.url).wait_for_ide()
        await person.move_to(scene.genome, "STANDBY")


@asynccontextmanager
async def window(
    browser: Browser,
    person: Person,
    scheme: Scheme = "light",
    name: str = "list",
    *,
    phone: bool = False,
    signed_in: bool = True,
) -> AsyncIterator[Page]:
    viewport: ViewportSize = PHONE if phone else {"width": WIDTH, "height": HEIGHTS[name]}
    context = await browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    if signed_in:
        session = person.credentials.session
        await context.add_cookies([{"name": PLAIN_COOKIE, "value": session, "url": person.url}])
    try:
        yield await context.new_page()
    finally:
        await context.close()


async def save(page: Page, name: str) -> None:
    await page.screenshot(path=DIRECTORY / f"{name}.png")


if __name__ == "__main__":
    asyncio.run(take_all())
