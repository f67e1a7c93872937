"""Add what a workspace waits for: a provider that does not respond, or the next attempt of a purge."""

from collections.abc import Sequence

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0012_waiting"
down_revision = "0011_home_store"

NEW_COLUMNS = {"waiting_for": "text[]", "waiting_since": "timestamptz", "retry_at": "timestamptz"}
SHOWN = ("waiting_for", "waiting_since")

# Copies of what 0008 watches and counts, because released revisions do not change.
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
    "recover_requested_at",
    "recover_handled_at",
)
VERSIONED = (
    *WATCHED,
    "phase_changed_at",
    "op_started_at",
    "conditions",
    "error_count",
    "purge",
)


def watch(columns: Sequence[str]) -> None:
    """Notify listeners when one of these changes."""
    op.execute("DROP TRIGGER IF EXISTS ws_sse_update ON workspaces")
    op.execute(
        "CREATE TRIGGER ws_sse_update AFTER UPDATE ON workspaces FOR EACH ROW "
        f"WHEN (NEW.phase <> 'DELETED' AND {_differ(columns)}) EXECUTE FUNCTION notify_workspace('ws_sse')"
    )


def count(columns: Sequence[str]) -> None:
    """Increment the version when one of these changes."""
    op.execute("DROP TRIGGER IF EXISTS ws_version ON workspaces")
    op.execute(
        "CREATE TRIGGER ws_version BEFORE UPDATE ON workspaces FOR EACH ROW "
        f"WHEN ({_differ(columns)}) EXECUTE FUNCTION count_workspace_version()"
    )


def _differ(columns: Sequence[str]) -> str:
    before, after = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    return f"({before}) IS DISTINCT FROM ({after})"


def upgrade() -> None:
    additions = (f"ADD COLUMN IF NOT EXISTS {name} {kind}" for name, kind in NEW_COLUMNS.items())
    with each_statement_by_itself():
        op.execute(f"ALTER TABLE workspaces {', '.join(additions)}")
    watch((*WATCHED, *SHOWN))
    count((*VERSIONED, *SHOWN))


def downgrade() -> None:
    watch(WATCHED)
    count(VERSIONED)
    op.execute(f"ALTER TABLE workspaces {', '.join(f'DROP COLUMN IF EXISTS {name}' for name in NEW_COLUMNS)}")
