"""Notify listeners when an instance stops or resumes responding, or a restart would apply changes."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0017_instance_notices"
down_revision = "0014_recovery"

# Other conditions change together with the phase, which is watched already; transition times do not count.
SEEN = ("{infra.container_answers,status}", "{infra.configuration_current,message}")
BEFORE, AFTER = (", ".join(f"{row}.conditions #>> '{path}'" for path in SEEN) for row in ("OLD", "NEW"))


def upgrade() -> None:
    with each_statement_by_itself():
        # PostgreSQL merges equal notices of a transaction, so this adds none to a change of phase.
        op.execute(
            f"CREATE OR REPLACE TRIGGER ws_sse_instance AFTER UPDATE ON workspaces FOR EACH ROW "
            f"WHEN (NEW.phase <> 'DELETED' AND ({BEFORE}) IS DISTINCT FROM ({AFTER})) "
            f"EXECUTE FUNCTION notify_workspace('ws_sse')"
        )


def downgrade() -> None:
    op.execute("DROP TRIGGER IF EXISTS ws_sse_instance ON workspaces")
