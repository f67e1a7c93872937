"""Ten thousand workspaces of many users, and the API in front of them as its own process."""

import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import text, update

from benchmarks.scale.parked import ARCHIVED, STANDBY, add_parked
from benchmarks.servers import STOP_SECONDS
from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.embedded.free_ports import choose_ports
from codehub.services.credentials import create_token
from testkit.deployment import Deployment
from testkit.rows import add_user
from testkit.waiting import until

UNLIMITED = {"CODEHUB_API_REQUESTS_PER_SECOND": "1000000"}


@dataclass(frozen=True, eq=False)
class Member:
    """Somebody with a token and workspaces."""

    user_id: UUID
    token: str
    workspaces: Sequence[WorkspaceId]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}


@dataclass(frozen=True)
class Population:
    """The one who asks, an administrator, and everybody else."""

    caller: Member
    admin: Member
    others: Sequence[Member]


@dataclass(frozen=True)
class ApiProcess:
    """`python -m api`, ready."""

    pid: int
    port: int


async def populate(deployment: Deployment, workspaces: int, of_the_caller: int, others: int) -> Population:
    """Half of the workspaces stand by, half are archived; those of the others are spread evenly."""
    ids = [
        *await add_parked(deployment, workspaces // 2, STANDBY),
        *await add_parked(deployment, workspaces - workspaces // 2, ARCHIVED),
    ]
    random.Random(len(ids)).shuffle(ids)  # noqa: S311 (the same in every run)
    caller = await _add_member(deployment, ids[:of_the_caller])
    rest = ids[of_the_caller:]
    everybody = [await _add_member(deployment, rest[number::others]) for number in range(others)]
    admin = await _add_member(deployment, [])
    async with deployment.database.transaction() as session:
        await session.execute(text("UPDATE users SET role = 'admin' WHERE id = :id"), {"id": admin.user_id})
        await session.execute(text("ANALYZE workspaces"))
    return Population(caller, admin, everybody)


async def _add_member(deployment: Deployment, workspaces: Sequence[WorkspaceId]) -> Member:
    """A user with a token, to whom these workspaces go; nobody is told."""
    async with deployment.database.transaction() as session:
        user_id = await add_user(session)
        await session.execute(text("SET LOCAL session_replication_role = replica"))
        await session.execute(
            update(Workspace)
            .where(Workspace.id.in_([UUID(each) for each in workspaces]))
            .values(owner_user_id=user_id)
        )
    created = await create_token(
        deployment.database, user_id, "benchmark", expires_at=None, now=datetime.now(UTC)
    )
    return Member(user_id, created.token, workspaces)


@asynccontextmanager
async def api_of(deployment: Deployment) -> AsyncIterator[ApiProcess]:
    """The API as in production; it ends gently."""
    port = choose_ports(["api"], {})["api"]
    ready = Path(deployment.environment["CODEHUB_DATA_DIR"], "api.ready")
    ready.unlink(missing_ok=True)  # noqa: ASYNC240 (once, in an instant)
    environment = {
        **deployment.environment,
        **UNLIMITED,
        "CODEHUB_API_PORT": str(port),
        "CODEHUB_API_READY_FILE": str(ready),
    }
    with child((sys.executable, "-m", "api"), environment, ready.with_suffix(".log")) as process:
        await until_there(process, ready)
        yield ApiProcess(process.pid, port)


async def until_there(process: subprocess.Popen[bytes], ready: Path) -> None:
    async def is_ready() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"a server ended with status {process.returncode}")
        return ready.exists()  # noqa: ASYNC240 (once, in an instant)

    await until(is_ready, "the server is ready")


@contextmanager
def child(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process with its log; it is gone afterwards."""
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 (our own command)
            command, env=dict(environment), stdout=output, stderr=output, cwd=log.parent
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
