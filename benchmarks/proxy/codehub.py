"""CodeHub's proxy as in production, before workspaces whose IDE is the benchmark's upstream."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from benchmarks.proxy.testbed import Contestant, Stage, Visitor, contestant, free_port
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
async def ours(stage: Stage) -> AsyncIterator[Contestant]:
    """`python -m proxy` with PostgreSQL and Redis behind it."""
    async with real_deployment() as deployment:
        for visitor in stage.visitors:
            await _sign_in(deployment, visitor, _workspaces_of(visitor, stage))
        port = free_port()
        environment = {
            **deployment.environment,
            "CODEHUB_PROXY_PORT": str(port),
            "CODEHUB_PUBLIC_BASE_URL": f"http://127.0.0.1:{port}",
        }
        with _instances(deployment, stage):
            async with contestant(
                stage, "ours", (sys.executable, "-m", "proxy"), port=port, environment=environment
            ) as ready:
                yield ready


@asynccontextmanager
async def transport(stage: Stage) -> AsyncIterator[Contestant]:
    """The same without its upper half."""
    port = free_port()
    words = (str(port), stage.pages_prefix, str(stage.pages_port), str(stage.echo_port))
    command = (sys.executable, "-m", "benchmarks.proxy.transport", *words)
    async with contestant(stage, "transport", command, port=port, environment=os.environ) as ready:
        yield ready


def _workspaces_of(visitor: Visitor, stage: Stage) -> dict[WorkspaceId, int]:
    """With the port of the upstream of each."""
    pages = {stage.pages_id: stage.pages_port} if visitor is stage.visitors[0] else {}
    return {visitor.workspace_id: stage.echo_port, **pages}


async def _sign_in(deployment: Deployment, visitor: Visitor, workspaces: dict[WorkspaceId, int]) -> None:
    now = datetime.now(UTC)
    signed_in = SessionView(uuid4(), now, now + timedelta(days=1), now, "benchmark")
    async with deployment.database.transaction() as session:
        user_id = await add_user(session)
        await insert_session(session, user_id, signed_in, hash_token(visitor.token))
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
def _instances(deployment: Deployment, stage: Stage) -> Iterator[None]:
    """What a worker would leave on disk, but that we hold the locks by which instances are known to live."""
    root = LocalRoot.at(local_root_of(deployment.settings))
    with ExitStack() as stack:
        for visitor in stage.visitors:
            for workspace_id, port in _workspaces_of(visitor, stage).items():
                directory = root.instance(workspace_id)
                directory.mkdir(mode=PRIVATE)
                stack.callback(os.close, acquire_alive_lock(directory / LOCK_NAME))
                InstanceState(IDE, port, token="").write(directory)
        yield
