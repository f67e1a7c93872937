"""What is not where it should be: still on its way, or stuck."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, select, text, union
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.models import Workspace
from codehub.db.workspaces import workspace_ids
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation


@dataclass(frozen=True)
class OperationInProgress:
    """An operation that was claimed and has not ended."""

    workspace_id: WorkspaceId
    operation: Operation
    started_at: datetime | None


async def not_converged(session: AsyncSession, limit: int) -> list[WorkspaceId]:
    """Workspaces with something left to do, deletions and recoveries among them.

    Those that have not been looked at for longest come first.
    """
    return workspace_ids(await session.scalars(select_not_converged(limit)))


async def operations_in_progress(session: AsyncSession) -> list[OperationInProgress]:
    rows = await session.execute(select_operations_in_progress())
    return [OperationInProgress(WorkspaceId(str(row[0])), Operation(row[1]), row[2]) for row in rows]


def select_not_converged(limit: int) -> Select[UUID]:
    columns = select(Workspace.id, Workspace.observed_at)
    # The database cannot guess in how few rows two columns differ; asked for some of them in the order of
    # their index, it reads that and not the table.
    recovering = columns.where(text(predicates.RECOVERING)).order_by(Workspace.id).limit(limit)
    # An arm for each partial index; a union, because one that is recovering may be in another arm too.
    unfinished = union(
        columns.where(text(predicates.NOT_CONVERGED)),
        columns.where(text(predicates.BEING_DELETED)),
        select(recovering.subquery()),
    ).subquery()
    # Fair to all also when some cannot converge: whoever was observed goes to the end.
    return (
        select(unfinished.c.id).order_by(unfinished.c.observed_at.nulls_first(), unfinished.c.id).limit(limit)
    )


def select_operations_in_progress() -> Select[UUID, str, datetime | None]:
    return (
        select(Workspace.id, Workspace.operation, Workspace.op_started_at)
        .where(text(predicates.OPERATION_IN_PROGRESS))
        .order_by(Workspace.op_started_at)
    )
