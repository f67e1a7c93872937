"""Add the quarters of an hour in which each workspace was used."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0010_usage"
down_revision = "0009_credentials"

# No foreign key: recording a use must not wait for the row of the workspace.
WORKSPACE_USAGE = """
    workspace_id uuid NOT NULL,
    bucket timestamptz NOT NULL,
    CONSTRAINT pk_workspace_usage PRIMARY KEY (workspace_id, bucket)
"""


def upgrade() -> None:
    with each_statement_by_itself():
        op.execute(f"CREATE TABLE IF NOT EXISTS workspace_usage ({WORKSPACE_USAGE})")
        op.execute("CREATE INDEX IF NOT EXISTS ix_workspace_usage_bucket ON workspace_usage (bucket)")


def downgrade() -> None:
    op.execute("DROP TABLE IF EXISTS workspace_usage")
