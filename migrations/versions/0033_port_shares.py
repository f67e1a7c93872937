"""Add the ports of a workspace that are shared; a change is announced and counted like any visible one."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0033_port_shares"
down_revision = "0032_lockout"

DIFFERS = "OLD.port_shares IS DISTINCT FROM NEW.port_shares"


def upgrade() -> None:
    with each_statement_by_itself():
        op.execute(
            "ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS port_shares jsonb DEFAULT '{}'::jsonb NOT NULL"
        )
        # PostgreSQL merges equal notices of a transaction.
        op.execute(
            "CREATE OR REPLACE TRIGGER ws_sse_shares AFTER UPDATE OF port_shares ON workspaces FOR EACH ROW "
            f"WHEN (NEW.phase <> 'DELETED' AND {DIFFERS}) EXECUTE FUNCTION notify_workspace('ws_sse')"
        )
        # It sets the version to the old one plus one, so both triggers together count once.
        op.execute(
            "CREATE OR REPLACE TRIGGER ws_version_shares BEFORE UPDATE OF port_shares ON workspaces "
            f"FOR EACH ROW WHEN ({DIFFERS}) EXECUTE FUNCTION count_workspace_version()"
        )


def downgrade() -> None:
    op.execute("DROP TRIGGER IF EXISTS ws_version_shares ON workspaces")
    op.execute("DROP TRIGGER IF EXISTS ws_sse_shares ON workspaces")
    op.execute("ALTER TABLE workspaces DROP COLUMN IF EXISTS port_shares")
