"""Numbers for workspaces that have a port of their own; none is ever given twice."""

from alembic import op

from migrations.steps import create_indexes, drop_indexes, each_statement_by_itself

revision = "0029_origin_numbers"
down_revision = "0025_totp"

INDEX = "uq_workspaces_origin_number"


def upgrade() -> None:
    with each_statement_by_itself():
        op.execute("ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS origin_number integer")
        op.execute("CREATE SEQUENCE IF NOT EXISTS workspace_origin_numbers AS integer")
    create_indexes({INDEX: "workspaces (origin_number) WHERE origin_number IS NOT NULL"}, kind="UNIQUE INDEX")


def downgrade() -> None:
    drop_indexes([INDEX])
    op.execute("DROP SEQUENCE IF EXISTS workspace_origin_numbers")
    op.execute("ALTER TABLE workspaces DROP COLUMN IF EXISTS origin_number")
