"""Tell listeners when a running instance stops answering or answers again, or could be restarted to apply."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0017_instance_notices"
down_revision = "0014_recovery"

# Other conditions change together with the phase, which is watched already. Transition times are not watched.
SEEN = ("{infra.container_answers,status}", "{infra.configuration_current,message}")
BEFORE, AFTER = (", ".join(f"{row}.conditions #>> '{path}'" for path in SEEN) for row in ("OLD", "NEW"))


def upgrade() -> None:
    with each_statement_by_itself():
        # PostgreSQL sends equal notices of one transaction once: this adds none to a change of phase.
        op.execute(
            f"CREATE OR REPLACE TRIGGER ws_sse_instance AFTER UPDATE ON workspaces FOR EACH ROW "
            f"WHEN (NEW.phase <> 'DELETED' AND ({BEFORE}) IS DISTINCT FROM ({AFTER})) "
            f"EXECUTE FUNCTION notify_workspace('ws_sse')"
        )


def downgrade() -> None:
    op.execute("DROP TRIGGER IF EXISTS ws_sse_instance ON workspaces")
