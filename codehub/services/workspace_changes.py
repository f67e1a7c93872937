"""Changing what a person says about a workspace and where it should be: all of it or nothing."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

from codehub.db.events import EventKind, record_event
from codehub.db.session import Database
from codehub.db.workspaces import Metadata, lock_visible_workspace, set_metadata
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.states import DesiredState
from codehub.services.errors import VersionConflict, WorkspaceNotFound
from codehub.services.workspaces import change_desired_state

# Some fields of `Metadata`. None is a value: no description, or the configured TTL.
MetadataValues: TypeAlias = Mapping[str, str | int | None]


async def patch_workspace(
    database: Database,
    workspace_id: WorkspaceId,
    change: MetadataValues,
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


def _differences(change: MetadataValues, present: Metadata) -> dict[str, str | int | None]:
    return {name: value for name, value in change.items() if value != getattr(present, name)}
