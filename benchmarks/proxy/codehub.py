"""CodeHub's proxy as in production; the IDE of its workspaces is the benchmark's upstream."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from benchmarks.proxy.testbed import Browser, Contestant, Testbed, contestant, free_port
from benchmarks.servers import real_deployment
from codehub.adapters.local.instance_files import LOCK_NAME, InstanceState
from codehub.adapters.local.locks import acquire_alive_lock
from codehub.adapters.local.root import PRIVATE, LocalRoot
from codehub.db.credentials import SessionView, insert_session
from codehub.domain.conditions import WorkspaceId
from codehub.providers import local_root_of
from codehub.services.credentials import hash_token
from testkit.deployment import Deployment
from testkit.rows import add_user, add_workspace

IDE = "code-server"


@asynccontextmanager
async def ours(testbed: Testbed) -> AsyncIterator[Contestant]:
    """Run `python -m proxy` with PostgreSQL and Redis."""
    async with real_deployment() as deployment:
        for browser in testbed.browsers:
            await _sign_in(deployment, browser, _workspaces_of(browser, testbed))
        port = free_port()
        environment = {
            **deployment.environment,
            "CODEHUB_PROXY_PORT": str(port),
            "CODEHUB_PUBLIC_BASE_URL": f"http://127.0.0.1:{port}",
        }
        with _instances(deployment, testbed):
            async with contestant(
                testbed, "ours", (sys.executable, "-m", "proxy"), port=port, environment=environment
            ) as ready:
                yield ready


@asynccontextmanager
async def transport(testbed: Testbed) -> AsyncIterator[Contestant]:
    """Run only its transport, without sessions and routing."""
    port = free_port()
    arguments = (str(port), testbed.pages_prefix, str(testbed.pages_port), str(testbed.echo_port))
    command = (sys.executable, "-m", "benchmarks.proxy.transport", *arguments)
    async with contestant(testbed, "transport", command, port=port, environment=os.environ) as ready:
        yield ready


def _workspaces_of(browser: Browser, testbed: Testbed) -> dict[WorkspaceId, int]:
    """Return the browser's workspaces with the port of their upstream."""
    pages = {testbed.pages_id: testbed.pages_port} if browser is testbed.browsers[0] else {}
    return {browser.workspace_id: testbed.echo_port, **pages}


async def _sign_in(deployment: Deployment, browser: Browser, workspaces: dict[WorkspaceId, int]) -> None:
    now = datetime.now(UTC)
    signed_in = SessionView(uuid4(), now, now + timedelta(days=1), now, "benchmark")
    async with deployment.database.transaction() as session:
        user_id = await add_user(session)
        await insert_session(session, user_id, signed_in, hash_token(browser.token))
        for workspace_id in workspaces:
            await add_workspace(
                session,
                user_id,
                id=UUID(workspace_id),
                image_ref=IDE,
                phase="RUNNING",
                desired_state="RUNNING",
                phase_changed_at=now,
            )


@contextmanager
def _instances(deployment: Deployment, testbed: Testbed) -> Iterator[None]:
    """Write the state files of a worker, and hold the locks that mark instances as running."""
    root = LocalRoot.at(local_root_of(deployment.settings))
    with ExitStack() as stack:
        for browser in testbed.browsers:
            for workspace_id, port in _workspaces_of(browser, testbed).items():
                directory = root.instance(workspace_id)
                directory.mkdir(mode=PRIVATE)
                stack.callback(os.close, acquire_alive_lock(directory / LOCK_NAME))
                InstanceState(IDE, port, token="").write(directory)
        yield
