"""Sessions: when the password was last entered, and how long they may be idle."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0021_sessions"
down_revision = "0027_workspace_sessions"


def upgrade() -> None:
    with each_statement_by_itself():
        # Null for sessions of older releases: they were confirmed at sign-in and have no idle timeout.
        op.execute("ALTER TABLE sessions ADD COLUMN IF NOT EXISTS confirmed_at timestamptz")
        op.execute("ALTER TABLE sessions ADD COLUMN IF NOT EXISTS idle_seconds integer")


def downgrade() -> None:
    op.execute("ALTER TABLE sessions DROP COLUMN IF EXISTS confirmed_at, DROP COLUMN IF EXISTS idle_seconds")
