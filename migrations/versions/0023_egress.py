"""Add network policies of workspaces, and the log of the names that they connected to."""

from alembic import op

from migrations.steps import add_checks, drop_constraints, each_statement_by_itself

revision = "0023_egress"
down_revision = "0020_audit_log"

COLUMNS = {
    "egress_mode": "text",
    "egress_names": "text[]",
    "egress_limit_mode": "text",
    "egress_limit_names": "text[]",
}
MODES = "('open', 'allow-list', 'none')"
CHECKS = {
    "ck_workspaces_egress_mode": f"egress_mode IN {MODES}",
    "ck_workspaces_egress_limit_mode": f"egress_limit_mode IN {MODES}",
}
# No foreign key: the gateway must not wait for the row of the workspace.
EGRESS_LOG = """
    workspace_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    name text NOT NULL,
    port integer NOT NULL,
    verdict text NOT NULL,
    count bigint NOT NULL,
    CONSTRAINT pk_egress_log PRIMARY KEY (workspace_id, hour, name, port, verdict),
    CONSTRAINT ck_egress_log_verdict CHECK (verdict IN ('allowed', 'refused'))
"""


def upgrade() -> None:
    with each_statement_by_itself():
        for name, kind in COLUMNS.items():
            op.execute(f"ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS {name} {kind}")
        op.execute(f"CREATE TABLE IF NOT EXISTS egress_log ({EGRESS_LOG})")
        op.execute("CREATE INDEX IF NOT EXISTS ix_egress_log_hour ON egress_log (hour)")
    add_checks("workspaces", CHECKS)


def downgrade() -> None:
    op.execute("DROP TABLE IF EXISTS egress_log")
    drop_constraints("workspaces", list(CHECKS))
    for name in COLUMNS:
        op.execute(f"ALTER TABLE workspaces DROP COLUMN IF EXISTS {name}")
