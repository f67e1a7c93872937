"""Workspaces that were migrated from M1 and whose homes are still in M1's directories."""

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
# After an observation, the workspace has a home here, or its owner knows about the loss.
_UNTOUCHED = and_(_KEY_OF_M1, Workspace.observed_at.is_(None))
_CONSIDERED_LOST = and_(
    _KEY_OF_M1, Workspace.error_reason == ErrorReason.DATA_LOST, Workspace.archive_key.is_(None)
)
_TO_IMPORT = and_(or_(_UNTOUCHED, _CONSIDERED_LOST), Workspace.operation == Operation.NONE)
_HAD_HOME = Workspace.conditions["storage.volume_ready"]["status"].astext == Status.TRUE
_NOT_DELETED = text(predicates.VISIBLE)


@dataclass(frozen=True)
class M1Home:
    """A home in M1's directory; `home_store_key` is its path there."""

    workspace_id: WorkspaceId
    name: str
    home_store_key: str
    instance_backend: str
    # False for workspaces that were never started or were being deleted: M1 may have no home for them.
    must_exist: bool


@dataclass(frozen=True)
class UnimportedHomes:
    """How many homes have to be imported, and the name of one of the workspaces."""

    count: int
    example: str


@dataclass(frozen=True)
class Backend:
    """The backend of imported workspaces; those that ran on another backend get the default image."""

    instance_backend: str
    storage_backend: str
    default_image_ref: str


def only_in_m1() -> ColumnElement[bool]:
    """Return the condition for workspaces whose homes are only in M1's directories."""
    return _UNTOUCHED


async def find_unimported(session: AsyncSession) -> UnimportedHomes | None:
    """Return the homes that a worker would consider lost, or None if there are none."""
    statement = select(func.count(), func.min(Workspace.name)).where(_UNTOUCHED, _NOT_DELETED)
    count, example = (await session.execute(statement)).one()
    return UnimportedHomes(count, example) if count else None


async def load_homes(session: AsyncSession) -> list[M1Home]:
    """Return all homes to import in a stable order, also those that an earlier version considered lost."""
    statement = (
        select(
            Workspace.id,
            Workspace.name,
            Workspace.home_store_key,
            Workspace.instance_backend,
            or_(_HAD_HOME, _CONSIDERED_LOST).label("must_exist"),
        )
        .where(_TO_IMPORT, _NOT_DELETED)
        .order_by(Workspace.created_at, Workspace.id)
    )
    return [
        M1Home(
            WorkspaceId(str(row.id)), row.name, row.home_store_key, row.instance_backend, bool(row.must_exist)
        )
        for row in await session.execute(statement)
    ]


async def begin_import(session: AsyncSession, home: M1Home, archive_op_id: str) -> None:
    """Store the id of the upload before it begins, which protects it from the collector."""
    await session.execute(_update(home).values(archive_op_id=UUID(archive_op_id)))


async def move_home(session: AsyncSession, home: M1Home, backend: Backend) -> bool:
    """Record the import; return False if the home was imported before or its owner continued without it."""
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
