"""Limits count every container that is there, also one of a workspace that is being deleted."""

from migrations.steps import create_indexes

revision = "0013_retention"
down_revision = "0010_usage"

RUNNING = "ix_workspaces_running"
COUNTED_BEFORE = (
    "workspaces (owner_user_id) WHERE deleted_at IS NULL AND (desired_state = 'RUNNING' OR phase = 'RUNNING')"
)
COUNTED_NOW = (
    "workspaces (owner_user_id) "
    "WHERE (deleted_at IS NULL AND desired_state = 'RUNNING') OR phase = 'RUNNING' "
    "OR conditions->'infra.container_ready'->>'reason' IN ('Ready', 'NotReady')"
)


def upgrade() -> None:
    create_indexes({RUNNING: COUNTED_NOW})


def downgrade() -> None:
    create_indexes({RUNNING: COUNTED_BEFORE})
