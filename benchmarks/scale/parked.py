"""Add rows of converged workspaces, as the control plane itself would have written them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, text

from codehub.db.models import Workspace
from codehub.domain.conditions import (
    ArchiveFact,
    ContainerFact,
    Observation,
    Snapshot,
    VolumeFact,
    WorkspaceId,
    conditions_to_json,
)
from codehub.domain.judge import judge
from codehub.domain.naming import archive_key, volume_name
from codehub.domain.states import DesiredState, Phase
from testkit.deployment import Deployment
from testkit.rows import new_workspace_id

BATCH = 500
ARCHIVED = Observation(ContainerFact.ABSENT, VolumeFact.ABSENT, ArchiveFact.PRESENT)
STANDBY = Observation(ContainerFact.ABSENT, VolumeFact.PRESENT, ArchiveFact.ABSENT)


async def add_parked(deployment: Deployment, count: int, facts: Observation) -> list[WorkspaceId]:
    """Add converged workspaces with these facts, without triggering notifications."""
    desired = DesiredState.ARCHIVED if facts is ARCHIVED else DesiredState.STANDBY
    rows = list(_rows(deployment.owner, count, desired, facts))
    async with deployment.database.transaction() as session:
        await session.execute(text("SET LOCAL session_replication_role = replica"))
        for start in range(0, count, BATCH):
            await session.execute(insert(Workspace), rows[start : start + BATCH])
    async with deployment.database.transaction() as session:
        await session.execute(text("ANALYZE workspaces"))
    return [WorkspaceId(str(row["id"])) for row in rows]


def _rows(owner: UUID, count: int, desired: DesiredState, facts: Observation) -> Iterator[dict[str, Any]]:
    now = datetime.now(UTC)
    for _ in range(count):
        workspace_id, operation_id = new_workspace_id(), str(uuid4())
        key = archive_key(workspace_id, operation_id) if facts is ARCHIVED else None
        before = Snapshot(workspace_id, desired, phase=Phase(desired.value), archive_key=key)
        observed = judge(before, facts, now)
        if observed.phase.value != desired.value:
            raise RuntimeError(f"a parked workspace would be {observed.phase}, not {desired}")
        yield {
            "id": UUID(workspace_id),
            "owner_user_id": owner,
            "name": "home",
            "image_ref": "code-server",
            "instance_backend": "local",
            "storage_backend": "local-dir",
            "home_store_key": volume_name(workspace_id),
            "conditions": conditions_to_json(observed.conditions),
            "observed_at": now,
            "phase": observed.phase,
            "phase_changed_at": now,
            "desired_state": desired,
            "archive_key": key,
            "archive_op_id": UUID(operation_id) if key else None,
        }
