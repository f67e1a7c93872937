"""Notify listeners when a deletion becomes a purge; only archives that were read count as verified."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0018_purge_notices"
down_revision = "0017_instance_notices"


def upgrade() -> None:
    with each_statement_by_itself():
        # PostgreSQL merges equal notices of a transaction.
        op.execute(
            "CREATE OR REPLACE TRIGGER ws_sse_purge AFTER UPDATE OF purge ON workspaces FOR EACH ROW "
            "WHEN (NEW.phase <> 'DELETED' AND OLD.purge <> NEW.purge) "
            "EXECUTE FUNCTION notify_workspace('ws_sse')"
        )
        # It held the time of the upload, when nothing had been read back.
        op.execute("UPDATE archives SET verified_at = NULL WHERE verified_at = created_at")


def downgrade() -> None:
    op.execute("DROP TRIGGER IF EXISTS ws_sse_purge ON workspaces")
