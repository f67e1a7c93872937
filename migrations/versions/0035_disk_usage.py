"""Add how much disk space each workspace uses, and its own limit; a change of the limit is announced."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0035_disk_usage"
down_revision = "0034_port_sessions"

NEW_COLUMNS = {
    "disk_used_bytes": "bigint",
    "disk_measured_at": "timestamptz",
    "disk_complete": "boolean",
    "disk_limit_bytes": "bigint",
}
# Not the measurements: a sweep announces those that matter, and they do not count as changes.
DIFFERS = "OLD.disk_limit_bytes IS DISTINCT FROM NEW.disk_limit_bytes"


def upgrade() -> None:
    additions = (f"ADD COLUMN IF NOT EXISTS {name} {kind}" for name, kind in NEW_COLUMNS.items())
    with each_statement_by_itself():
        op.execute(f"ALTER TABLE workspaces {', '.join(additions)}")
        op.execute(
            "CREATE OR REPLACE TRIGGER ws_sse_disk AFTER UPDATE OF disk_limit_bytes ON workspaces "
            f"FOR EACH ROW WHEN (NEW.phase <> 'DELETED' AND {DIFFERS}) "
            "EXECUTE FUNCTION notify_workspace('ws_sse')"
        )
        op.execute(
            "CREATE OR REPLACE TRIGGER ws_version_disk BEFORE UPDATE OF disk_limit_bytes ON workspaces "
            f"FOR EACH ROW WHEN ({DIFFERS}) EXECUTE FUNCTION count_workspace_version()"
        )


def downgrade() -> None:
    op.execute("DROP TRIGGER IF EXISTS ws_version_disk ON workspaces")
    op.execute("DROP TRIGGER IF EXISTS ws_sse_disk ON workspaces")
    op.execute(f"ALTER TABLE workspaces {', '.join(f'DROP COLUMN IF EXISTS {name}' for name in NEW_COLUMNS)}")
