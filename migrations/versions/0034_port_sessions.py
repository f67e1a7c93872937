"""Let sessions on the origins of workspaces be for one port."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0034_port_sessions"
down_revision = "0033_port_shares"


def upgrade() -> None:
    with each_statement_by_itself():
        op.execute("ALTER TABLE workspace_sessions ADD COLUMN IF NOT EXISTS port integer")


def downgrade() -> None:
    # Without their port, they would open the IDE.
    op.execute("DELETE FROM workspace_sessions WHERE port IS NOT NULL")
    op.execute("ALTER TABLE workspace_sessions DROP COLUMN IF EXISTS port")
