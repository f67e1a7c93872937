"""Count wrong passwords by place and account, and remember from where each user has signed in."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0032_lockout"
down_revision = "0031_fresh_sign_ins"

# Keys are hashes: of unknown user names too, which people sometimes confuse with their password.
SIGN_IN_FAILURES = """
    key bytea NOT NULL,
    user_id uuid,
    count integer NOT NULL,
    failed_at timestamptz NOT NULL,
    locked_until timestamptz,
    CONSTRAINT pk_sign_in_failures PRIMARY KEY (key),
    CONSTRAINT fk_sign_in_failures_user_id_users FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
"""
KNOWN_PLACES = """
    user_id uuid NOT NULL,
    place bytea NOT NULL,
    seen_at timestamptz NOT NULL,
    CONSTRAINT pk_known_places PRIMARY KEY (user_id, place),
    CONSTRAINT fk_known_places_user_id_users FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
"""
INDEXES = {
    "ix_sign_in_failures_user_id": "sign_in_failures (user_id)",
    "ix_sign_in_failures_failed_at": "sign_in_failures (failed_at)",
}


def upgrade() -> None:
    with each_statement_by_itself():
        op.execute(f"CREATE TABLE IF NOT EXISTS sign_in_failures ({SIGN_IN_FAILURES})")
        op.execute(f"CREATE TABLE IF NOT EXISTS known_places ({KNOWN_PLACES})")
        for name, definition in INDEXES.items():
            op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {definition}")


def downgrade() -> None:
    op.execute("DROP TABLE IF EXISTS known_places")
    op.execute("DROP TABLE IF EXISTS sign_in_failures")
