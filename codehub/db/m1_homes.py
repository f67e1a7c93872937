"""Workspaces that were carried over from M1 and whose homes are still in M1's directories."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Update, and_, func, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.models import Workspace
from codehub.domain.conditions import Status, WorkspaceId
from codehub.domain.naming import volume_name
from codehub.domain.states import ErrorReason, Operation

IMPORTED_FROM = "imported_from"
_KEY_OF_M1 = Workspace.home_store_key.like("users/%")
# A worker that has looked at one has found a home, or a loss that its owner knows of.
_UNTOUCHED = and_(_KEY_OF_M1, Workspace.observed_at.is_(None))
_CALLED_LOST = and_(
    _KEY_OF_M1, Workspace.error_reason == ErrorReason.DATA_LOST, Workspace.archive_key.is_(None)
)
_TO_IMPORT = and_(or_(_UNTOUCHED, _CALLED_LOST), Workspace.operation == Operation.NONE)
_HAD_HOME = Workspace.conditions["storage.volume_ready"]["status"].astext == Status.TRUE
_NOT_GONE = text(predicates.VISIBLE)


@dataclass(frozen=True)
class M1Home:
    """A home that M1 kept, by its path below M1's directory of homes."""

    workspace_id: WorkspaceId
    name: str
    home_store_key: str
    instance_backend: str
    # False of workspaces that were never started, or were being deleted: M1 may not have one.
    must_exist: bool


@dataclass(frozen=True)
class Waiting:
    """How many homes are to be imported, and the name of one of the workspaces."""

    count: int
    example: str


@dataclass(frozen=True)
class Backend:
    """What holds and runs imported workspaces; the image is for those that ran on another backend."""

    instance_backend: str
    storage_backend: str
    default_image_ref: str


def only_in_m1() -> ColumnElement[bool]:
    """True of workspaces that only M1 ever had: nothing of theirs is in our stores."""
    return _UNTOUCHED


async def find_unimported(session: AsyncSession) -> Waiting | None:
    """The workspaces that a worker would take for lost; None if there are none."""
    statement = select(func.count(), func.min(Workspace.name)).where(_UNTOUCHED, _NOT_GONE)
    count, example = (await session.execute(statement)).one()
    return Waiting(count, example) if count else None


async def load_homes(session: AsyncSession) -> list[M1Home]:
    """Every home to import, also of workspaces that an earlier version called lost, in a stable order."""
    statement = (
        select(
            Workspace.id,
            Workspace.name,
            Workspace.home_store_key,
            Workspace.instance_backend,
            or_(_HAD_HOME, _CALLED_LOST).label("must_exist"),
        )
        .where(_TO_IMPORT, _NOT_GONE)
        .order_by(Workspace.created_at, Workspace.id)
    )
    return [
        M1Home(
            WorkspaceId(str(row.id)), row.name, row.home_store_key, row.instance_backend, bool(row.must_exist)
        )
        for row in await session.execute(statement)
    ]


async def begin_import(session: AsyncSession, home: M1Home, archive_op_id: str) -> None:
    """Store the id of the upload before it begins, which keeps the collector away from it."""
    await session.execute(_update(home).values(archive_op_id=UUID(archive_op_id)))


async def move_home(session: AsyncSession, home: M1Home, backend: Backend) -> bool:
    """Say that the home is no longer M1's; False if it is not, or if its owner has gone on without it."""
    values: dict[str, Any] = {
        "instance_backend": backend.instance_backend,
        "storage_backend": backend.storage_backend,
        "home_store_key": volume_name(home.workspace_id),
        "home_ctx": Workspace.home_ctx.concat(
            func.jsonb_build_object(IMPORTED_FROM, home.home_store_key, type_=Workspace.home_ctx.type)
        ),
    }
    if home.instance_backend != backend.instance_backend:
        values["image_ref"] = backend.default_image_ref
    moved = await session.scalar(_update(home).values(values).returning(Workspace.id))
    return moved is not None


def _update(home: M1Home) -> Update:
    return (
        update(Workspace)
        .where(
            Workspace.id == UUID(home.workspace_id),
            Workspace.home_store_key == home.home_store_key,
            _TO_IMPORT,
        )
        .execution_options(synchronize_session=False)
    )
