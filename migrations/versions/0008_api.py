"""Add what the API needs: recover requests, a version for ETags, details of sessions, idempotency keys."""

from collections.abc import Sequence

from alembic import op

from migrations.steps import (
    add_checks,
    create_indexes,
    drop_constraints,
    drop_indexes,
    each_statement_by_itself,
)

revision = "0008_api"
down_revision = "0007_drop_m1"

# Nullable or with a constant default, so that PostgreSQL only writes its catalog.
NEW_COLUMNS = {
    "sessions": {"user_agent": "text", "last_seen_at": "timestamptz"},
    "workspaces": {
        "recover_choice": "text",
        "recover_requested_at": "timestamptz",
        "recover_handled_at": "timestamptz",
        "version": "bigint NOT NULL DEFAULT 1",
    },
}

IDEMPOTENCY_KEYS = """
    user_id uuid NOT NULL
        CONSTRAINT fk_idempotency_keys_user_id_users REFERENCES users (id) ON DELETE CASCADE,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    workspace_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (user_id, key)
"""

WORKSPACE_CHECKS = {
    "ck_workspaces_recover_choice": "recover_choice IN ('retry', 'restore_archive', 'start_empty')",
    "ck_workspaces_recover_is_dated": "(recover_choice IS NULL) = (recover_requested_at IS NULL)",
}

INDEXES = {
    "ix_workspaces_recovering": (
        "workspaces (id) WHERE recover_requested_at IS DISTINCT FROM recover_handled_at"
    ),
    "ix_workspaces_visible": "workspaces (created_at, id) WHERE phase <> 'DELETED'",
    "ix_workspaces_visible_owner": "workspaces (owner_user_id, created_at, id) WHERE phase <> 'DELETED'",
    "ix_workspaces_deleted_owner": "workspaces (owner_user_id, deleted_at, id) WHERE phase = 'DELETED'",
    "ix_idempotency_keys_created_at": "idempotency_keys (created_at)",
}

# A workspace is shown while it is being deleted, so lists go by the phase.
REPLACED_INDEXES = {
    "ix_workspaces_owner": "workspaces (owner_user_id, created_at, id) WHERE deleted_at IS NULL"
}

# Everything that people see, except times that change on their own.
VERSIONED = (
    "phase",
    "phase_changed_at",
    "operation",
    "op_started_at",
    "conditions",
    "error_reason",
    "error_message",
    "error_count",
    "name",
    "description",
    "memo",
    "desired_state",
    "archive_key",
    "deleted_at",
    "purge",
    "standby_ttl_seconds",
    "archive_ttl_seconds",
    "recover_requested_at",
    "recover_handled_at",
)
OLD_ROW = ", ".join(f"OLD.{column}" for column in VERSIONED)
NEW_ROW = ", ".join(f"NEW.{column}" for column in VERSIONED)

FUNCTION = """
CREATE OR REPLACE FUNCTION count_workspace_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END
$$
"""
TRIGGER = "ws_version"

# A copy of what 0006 watches, because released revisions do not change.
WATCHED = (
    "phase",
    "operation",
    "error_reason",
    "error_message",
    "name",
    "description",
    "memo",
    "desired_state",
    "archive_key",
    "deleted_at",
    "standby_ttl_seconds",
    "archive_ttl_seconds",
)
# Also when a recovery is requested and carried out.
RECOVERY_COLUMNS = ("recover_requested_at", "recover_handled_at")


def watch(columns: Sequence[str]) -> None:
    """Notify listeners when one of these changes."""
    before, after = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    op.execute("DROP TRIGGER IF EXISTS ws_sse_update ON workspaces")
    op.execute(
        f"CREATE TRIGGER ws_sse_update AFTER UPDATE ON workspaces FOR EACH ROW WHEN (NEW.phase <> 'DELETED' "
        f"AND ({before}) IS DISTINCT FROM ({after})) EXECUTE FUNCTION notify_workspace('ws_sse')"
    )


def upgrade() -> None:
    with each_statement_by_itself():
        for table, columns in NEW_COLUMNS.items():
            additions = (f"ADD COLUMN IF NOT EXISTS {name} {kind}" for name, kind in columns.items())
            op.execute(f"ALTER TABLE {table} {', '.join(additions)}")
        op.execute(f"CREATE TABLE IF NOT EXISTS idempotency_keys ({IDEMPOTENCY_KEYS})")
    add_checks("workspaces", WORKSPACE_CHECKS)
    create_indexes(INDEXES)
    drop_indexes(list(REPLACED_INDEXES))
    op.execute(FUNCTION)
    op.execute(f"DROP TRIGGER IF EXISTS {TRIGGER} ON workspaces")
    op.execute(
        f"CREATE TRIGGER {TRIGGER} BEFORE UPDATE ON workspaces FOR EACH ROW "
        f"WHEN (({OLD_ROW}) IS DISTINCT FROM ({NEW_ROW})) EXECUTE FUNCTION count_workspace_version()"
    )
    watch((*WATCHED, *RECOVERY_COLUMNS))


def downgrade() -> None:
    watch(WATCHED)
    op.execute(f"DROP TRIGGER IF EXISTS {TRIGGER} ON workspaces")
    op.execute("DROP FUNCTION IF EXISTS count_workspace_version")
    create_indexes(REPLACED_INDEXES)
    drop_indexes(list(INDEXES))
    drop_constraints("workspaces", list(WORKSPACE_CHECKS))
    op.execute("DROP TABLE IF EXISTS idempotency_keys")
    for table, columns in NEW_COLUMNS.items():
        op.execute(f"ALTER TABLE {table} " + ", ".join(f"DROP COLUMN IF EXISTS {name}" for name in columns))
