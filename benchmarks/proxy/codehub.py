"""CodeHub's proxy as in production; the IDE of its workspaces is the benchmark's upstream."""

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from benchmarks.proxy.testbed import Browser, Contestant, Testbed, contestant, free_port
from benchmarks.servers import background_process, real_deployment
from codehub.adapters.local.instance_files import LOCK_NAME, SOCKETS_NAME, InstanceState, read_state
from codehub.adapters.local.launcher import AGENT_VARIABLE, RUN_AGENT
from codehub.adapters.local.locks import acquire_alive_lock
from codehub.adapters.local.root import PRIVATE, LocalRoot
from codehub.adapters.local.sandbox import AGENT_PACKAGE
from codehub.db.credentials import SessionView, insert_session
from codehub.db.models import Session
from codehub.db.workspace_sessions import insert_ticket, use_ticket
from codehub.domain.conditions import WorkspaceId
from codehub.instance_ports import RESERVED_PORTS, forwarder_options
from codehub.providers import local_root_of
from codehub.services.credentials import hash_token, new_session_token
from testkit.deployment import Deployment
from testkit.rows import add_user, add_workspace

IDE = "code-server"


@asynccontextmanager
async def ours(testbed: Testbed, *, with_ports: bool = False) -> AsyncIterator[Contestant]:
    """Run `python -m proxy` with PostgreSQL and Redis; the pages can also be a port of their workspace."""
    async with real_deployment() as deployment:
        for browser in testbed.browsers:
            await _sign_in(deployment, browser, _workspaces_of(browser, testbed))
        if with_ports:
            await _enter_port(deployment, testbed)
        port = free_port()
        environment = {
            **deployment.environment,
            "CODEHUB_PROXY_PORT": str(port),
            "CODEHUB_PUBLIC_BASE_URL": f"http://127.0.0.1:{port}",
            # All browsers of the benchmark share one address.
            "CODEHUB_PROXY_CONNECTIONS_PER_ADDRESS": "10000",
        }
        with _instances(deployment, testbed), _agent(deployment, testbed) if with_ports else nullcontext():
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
            await _enter(session, signed_in.id, browser, workspace_id)


async def _enter(
    session: AsyncSession,
    session_id: UUID,
    browser: Browser,
    workspace_id: WorkspaceId,
    port: int | None = None,
) -> None:
    """Give the browser a cookie for the workspace's own origin, or for its port's."""
    now, ticket = datetime.now(UTC), hash_token(new_session_token())
    expires_at = now + timedelta(seconds=30)
    await insert_ticket(session, session_id, workspace_id, ticket, port=port, now=now, expires_at=expires_at)
    label = workspace_id if port is None else f"{port}--{workspace_id}"
    token = hash_token(browser.token_for(label))
    await use_ticket(session, ticket, workspace_id, token, now, port=port)


async def _enter_port(deployment: Deployment, testbed: Testbed) -> None:
    browser = testbed.browsers[0]
    async with deployment.database.transaction() as session:
        token_hash = hash_token(browser.token)
        session_id = await session.scalar(select(Session.id).where(Session.token_hash == token_hash))
        if session_id is None:
            raise LookupError("the browser is not signed in")
        await _enter(session, session_id, browser, testbed.pages_id, testbed.pages_port)


@contextmanager
def _agent(deployment: Deployment, testbed: Testbed) -> Iterator[None]:
    """Run the agent of the workspace with the pages; its IDE does nothing."""
    directory = LocalRoot.at(local_root_of(deployment.settings)).instance(testbed.pages_id)
    state = read_state(directory)
    if state is None:
        raise LookupError("the instance has no state")
    address = {"sockets": str(directory / SOCKETS_NAME), "name": state.ports_socket}
    options = {"services": {"ports": forwarder_options(address, RESERVED_PORTS)}}
    agent = (sys.executable, "-I", "-S", "-c", RUN_AGENT, str(AGENT_PACKAGE.parent), "sleep", "infinity")
    environment = {"PATH": os.environ["PATH"], AGENT_VARIABLE: json.dumps(options)}
    with background_process(agent, environment, testbed.directory / "agent.log"):
        yield


@contextmanager
def _instances(deployment: Deployment, testbed: Testbed) -> Iterator[None]:
    """Write the state files of a worker, and hold the locks that mark instances as running."""
    root = LocalRoot.at(local_root_of(deployment.settings))
    with ExitStack() as stack:
        for browser in testbed.browsers:
            for workspace_id, port in _workspaces_of(browser, testbed).items():
                directory = root.instance(workspace_id)
                (directory / SOCKETS_NAME).mkdir(mode=PRIVATE, parents=True)
                state = InstanceState(IDE, token="")
                (directory / SOCKETS_NAME / state.socket).hardlink_to(testbed.socket(port))
                stack.callback(os.close, acquire_alive_lock(directory / LOCK_NAME))
                state.write(directory)
        yield
