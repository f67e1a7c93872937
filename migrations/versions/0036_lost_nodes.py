"""Lost nodes: the choice to wait for one, and notices about homes that are out of reach."""

from alembic import op

from migrations.steps import add_checks, each_statement_by_itself

revision = "0036_lost_nodes"
down_revision = "0035_disk_usage"

CHOICE = "ck_workspaces_recover_choice"
CHOICES = {CHOICE: "recover_choice IN ('retry', 'wait', 'restore_archive', 'use_disk', 'start_empty')"}
EARLIER_CHOICES = {CHOICE: "recover_choice IN ('retry', 'restore_archive', 'use_disk', 'start_empty')"}
# A first observation of a home within reach is no news.
LOST = " OR ".join(
    f"{row}.conditions #>> '{{storage.volume_reachable,reason}}' = 'NodeLost'" for row in ("OLD", "NEW")
)
BEFORE, AFTER = (f"{row}.conditions #>> '{{storage.volume_reachable,message}}'" for row in ("OLD", "NEW"))


def upgrade() -> None:
    add_checks("workspaces", CHOICES)
    with each_statement_by_itself():
        op.execute(
            "CREATE OR REPLACE TRIGGER ws_sse_reach AFTER UPDATE OF conditions ON workspaces FOR EACH ROW "
            f"WHEN (NEW.phase <> 'DELETED' AND ({LOST}) AND {BEFORE} IS DISTINCT FROM {AFTER}) "
            "EXECUTE FUNCTION notify_workspace('ws_sse')"
        )


def downgrade() -> None:
    op.execute("DROP TRIGGER IF EXISTS ws_sse_reach ON workspaces")
    # The earlier version does not know this choice, which changes nothing.
    op.execute("UPDATE workspaces SET recover_choice = 'retry' WHERE recover_choice = 'wait'")
    add_checks("workspaces", EARLIER_CHOICES)
