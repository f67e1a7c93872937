"""Running slots: counting the workspaces that are running or requested to run."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Boolean, ColumnElement, Select, func, literal_column, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Phase

# The key of a PostgreSQL advisory lock: "limits" in ASCII.
RUNNING_LIMITS_LOCK = 0x6C696D697473


@dataclass(frozen=True)
class RunningWorkspace:
    """A workspace that takes a slot, as its owner knows it."""

    workspace_id: WorkspaceId
    name: str
    phase: Phase
    desired_state: DesiredState
    needs_person: bool = False

    @property
    def is_stopping(self) -> bool:
        """Whether its slot becomes free by itself; a broken one keeps its container until a person acts."""
        return self.desired_state is not DesiredState.RUNNING and not self.needs_person


async def lock_running_limits(session: AsyncSession) -> None:
    """Let one transaction at a time count slots and take one.

    There is one lock, because there is a global limit. It must be the last lock that a transaction takes,
    after the row of its workspace: its holder waits for nothing, so there is no deadlock.
    """
    await session.execute(select(func.pg_advisory_xact_lock(RUNNING_LIMITS_LOCK)))


async def list_running(
    session: AsyncSession, owner_user_id: UUID, *, excluding: WorkspaceId | None = None
) -> list[RunningWorkspace]:
    """Return the workspaces of this owner that take a slot."""
    rows = await session.execute(select_running(owner_user_id, excluding))
    return [
        RunningWorkspace(WorkspaceId(str(row[0])), row[1], Phase(row[2]), DesiredState(row[3]), bool(row[4]))
        for row in rows
    ]


async def count_running(session: AsyncSession, *, excluding: WorkspaceId | None = None) -> int:
    """Count the slots that are taken."""
    return (await session.scalars(select_count_running(excluding))).one()


def select_running(
    owner_user_id: UUID, excluding: WorkspaceId | None
) -> Select[UUID, str, str, str, bool | None]:
    # NULL if there is no error; it counts as false.
    needs_person = literal_column(predicates.NEEDS_PERSON, Boolean)
    return (
        select(Workspace.id, Workspace.name, Workspace.phase, Workspace.desired_state, needs_person)
        .where(text(predicates.COUNTS_AS_RUNNING), Workspace.owner_user_id == owner_user_id, *_not(excluding))
        .order_by(Workspace.name, Workspace.id)
    )


def select_count_running(excluding: WorkspaceId | None) -> Select[int]:
    return (
        select(func.count())
        .select_from(Workspace)
        .where(text(predicates.COUNTS_AS_RUNNING), *_not(excluding))
    )


def _not(workspace_id: WorkspaceId | None) -> list[ColumnElement[bool]]:
    return [Workspace.id != UUID(workspace_id)] if workspace_id else []
