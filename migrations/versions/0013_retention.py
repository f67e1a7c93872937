"""Index old rows by age; count containers for the limits until they are gone, also during a deletion."""

from migrations.steps import create_indexes, drop_indexes

revision = "0013_retention"
down_revision = "0012_waiting"

INDEXES = {
    "ix_workspaces_deleted_at": "workspaces (deleted_at) WHERE phase = 'DELETED'",
    "ix_archives_deleted_at": "archives (deleted_at) WHERE deleted_at IS NOT NULL",
    "ix_workspace_events_at": "workspace_events (at)",
    "ix_sessions_expires_at": "sessions (expires_at)",
    "ix_api_tokens_ended_at": "api_tokens (least(expires_at, revoked_at))",
}

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
    create_indexes({RUNNING: COUNTED_NOW, **INDEXES})


def downgrade() -> None:
    create_indexes({RUNNING: COUNTED_BEFORE})
    drop_indexes(list(INDEXES))
