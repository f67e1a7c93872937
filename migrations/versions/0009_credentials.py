"""Notify listeners when a session or token of a user ends early; they load the details."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0009_credentials"
down_revision = "0008_api"

FUNCTION = """
CREATE OR REPLACE FUNCTION notify_credentials() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := to_jsonb(OLD);
BEGIN
    -- The trigger's argument is the column that says whose it is.
    PERFORM pg_notify('credentials',
        json_build_object('id', before -> 'id', 'owner_user_id', before -> TG_ARGV[0])::text);
    RETURN NULL;
END
$$
"""

# By table: the owner, and the time at which it ends before its expiry.
WATCHED = {
    "sessions": ("user_id", "revoked_at"),
    "api_tokens": ("user_id", "revoked_at"),
    "users": ("id", "disabled_at"),
}


def upgrade() -> None:
    # One lock at a time, and none that blocks readers.
    with each_statement_by_itself():
        op.execute(FUNCTION)
        for table, (owner, ends) in WATCHED.items():
            # Frequent updates of the last use and deletions of ended rows do not call the function.
            op.execute(
                f"CREATE OR REPLACE TRIGGER credentials_update AFTER UPDATE ON {table} FOR EACH ROW "
                f"WHEN (OLD.{ends} IS NULL AND NEW.{ends} IS NOT NULL) "
                f"EXECUTE FUNCTION notify_credentials('{owner}')"
            )
            op.execute(
                f"CREATE OR REPLACE TRIGGER credentials_delete AFTER DELETE ON {table} FOR EACH ROW "
                f"WHEN (OLD.{ends} IS NULL) EXECUTE FUNCTION notify_credentials('{owner}')"
            )


def downgrade() -> None:
    with each_statement_by_itself():
        for table in WATCHED:
            op.execute(f"DROP TRIGGER IF EXISTS credentials_update ON {table}")
            op.execute(f"DROP TRIGGER IF EXISTS credentials_delete ON {table}")
        op.execute("DROP FUNCTION IF EXISTS notify_credentials")
