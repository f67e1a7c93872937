"""Changing what a person says about a workspace and where it should be: all of it or nothing."""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from typing import Final

from codehub.db.events import EventKind, record_event
from codehub.db.requests import Metadata, lock_visible_workspace, set_metadata
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.states import DesiredState
from codehub.services.errors import VersionConflict, WorkspaceNotFound
from codehub.services.workspaces import change_desired_state


class Unchanged(Enum):
    """Not None, which is a value: no description, the configured TTL."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@dataclass(frozen=True)
class MetadataChange:
    """What to write; a field that is UNCHANGED is left alone."""

    name: str | Unchanged = UNCHANGED
    description: str | Unchanged | None = UNCHANGED
    memo: str | Unchanged | None = UNCHANGED
    standby_ttl_seconds: int | Unchanged | None = UNCHANGED
    archive_ttl_seconds: int | Unchanged | None = UNCHANGED


async def patch_workspace(
    database: Database,
    workspace_id: WorkspaceId,
    change: MetadataChange,
    desired: DesiredState | None,
    *,
    expected_version: int | None,
    actor: str,
    limits: RunningLimits,
    now: datetime,
) -> None:
    """Write what differs. Only a change of the desired state has to wait for an operation to end."""
    async with database.transaction() as session:
        workspace = await lock_visible_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        if expected_version not in {None, workspace.version}:
            raise VersionConflict(workspace.version)
        values = _differences(change, workspace.metadata)
        if values:
            await set_metadata(session, workspace_id, values, now)
            await record_event(
                session,
                workspace_id,
                EventKind.METADATA_CHANGED,
                now,
                actor=actor,
                phase=workspace.phase,
                # Names only: what a person writes is not for the audit trail.
                detail={"fields": sorted(values)},
            )
        if desired is not None:
            await change_desired_state(
                session, workspace_id, workspace, desired, actor=actor, limits=limits, now=now
            )


def _differences(change: MetadataChange, present: Metadata) -> dict[str, str | int | None]:
    wanted = {field.name: getattr(change, field.name) for field in fields(change)}
    return {
        name: value
        for name, value in wanted.items()
        if value is not UNCHANGED and value != getattr(present, name)
    }
