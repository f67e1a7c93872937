"""The home store of this database, and the homes that it should hold."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import not_, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.m1_homes import only_in_m1
from codehub.db.models import HomeStore, Workspace
from codehub.domain.conditions import WorkspaceId, conditions_from_json
from codehub.domain.states import Phase

# Built once: every change to a home runs it.
_RECORD = select(HomeStore.backend, HomeStore.identity, HomeStore.location, HomeStore.recorded_at)
WITH_HOME = frozenset({Phase.RUNNING, Phase.STANDBY})


@dataclass(frozen=True)
class RecordedStore:
    """The store that holds the homes; `location` is where it was when it was recorded."""

    backend: str
    identity: str
    location: str
    recorded_at: datetime


async def load_home_store(session: AsyncSession) -> RecordedStore | None:
    row = (await session.execute(_RECORD)).one_or_none()
    return RecordedStore(*row) if row else None


async def record_home_store(session: AsyncSession, backend: str, identity: str, location: str) -> None:
    """Record the store unless one is recorded; wait for a concurrent transaction that does the same."""
    values = {"backend": backend, "identity": identity, "location": location}
    await session.execute(insert(HomeStore).values(values).on_conflict_do_nothing())


async def replace_home_store(
    session: AsyncSession, backend: str, identity: str, location: str, now: datetime
) -> None:
    values = {"backend": backend, "identity": identity, "location": location, "recorded_at": now}
    statement = insert(HomeStore).values(values)
    await session.execute(statement.on_conflict_do_update(index_elements=[HomeStore.only_row], set_=values))


async def load_homes(session: AsyncSession) -> frozenset[WorkspaceId]:
    """Return the workspaces that have a volume according to their rows, except those only in M1."""
    columns = (Workspace.id, Workspace.phase, Workspace.conditions)
    statement = select(*columns).where(text(predicates.VISIBLE), not_(only_in_m1()))
    rows = await session.execute(statement)
    return frozenset(
        WorkspaceId(str(row.id))
        for row in rows
        if row.phase in WITH_HOME or conditions_from_json(row.conditions).volume_exists
    )


async def backends_in_use(session: AsyncSession) -> set[str]:
    """Return the backends of all workspaces that are not DELETED."""
    rows = await session.scalars(
        select(Workspace.instance_backend).where(text(predicates.VISIBLE)).distinct()
    )
    return set(rows)
