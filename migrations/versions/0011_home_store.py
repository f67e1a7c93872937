"""Add the record of the engine or directory that holds the homes."""

from alembic import op

revision = "0011_home_store"
down_revision = "0010_usage"

# At most one row: a second one would have the same key.
HOME_STORE = """
    only_row boolean NOT NULL DEFAULT true,
    backend text NOT NULL,
    identity text NOT NULL,
    location text NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_home_store PRIMARY KEY (only_row),
    CONSTRAINT ck_home_store_only_row CHECK (only_row)
"""


def upgrade() -> None:
    op.execute(f"CREATE TABLE IF NOT EXISTS home_store ({HOME_STORE})")


def downgrade() -> None:
    op.execute("DROP TABLE IF EXISTS home_store")
