"""Remove what only M1 used: its status, and session ids that are secrets."""

from alembic import op
from sqlalchemy import Connection, text

from migrations import carry_over
from migrations.errors import MigrationRefused
from migrations.steps import (
    add_checks,
    create_indexes,
    drop_indexes,
    each_statement_by_itself,
    set_not_null,
    update_in_batches,
)

revision = "0007_drop_m1"
down_revision = "0006_notify"

M1_STATUSES = (
    "status IN ('CREATED', 'PROVISIONING', 'RUNNING', 'STOPPING', 'STOPPED', 'DELETING', 'ERROR', 'DELETED')"
)

# PENDING has no home yet, whatever is desired; M1 has no archived state, so it keeps the home.
STATUS_OF_PHASE = """CASE
    WHEN phase = 'DELETED' THEN 'DELETED'
    WHEN deleted_at IS NOT NULL THEN 'DELETING'
    WHEN phase = 'ERROR' THEN 'ERROR'
    WHEN phase = 'RUNNING' THEN CASE desired_state WHEN 'RUNNING' THEN 'RUNNING' ELSE 'STOPPING' END
    WHEN phase = 'STANDBY' THEN CASE desired_state WHEN 'RUNNING' THEN 'PROVISIONING' ELSE 'STOPPED' END
    WHEN phase = 'PENDING' THEN 'CREATED'
END"""

# Their files are or will be only in an archive, or outside of M1's directory: M1 would show an empty home
# and forget the archive.
NOT_FOR_M1 = text("""
    SELECT id FROM workspaces WHERE deleted_at IS NULL AND (
        (archive_key IS NOT NULL AND phase NOT IN ('STANDBY', 'RUNNING'))
        OR operation IN ('RESTORING', 'ARCHIVING', 'CREATE_EMPTY_ARCHIVE')
        OR storage_backend <> 'local-dir'
        OR home_ctx ? 'imported_from')
    ORDER BY id LIMIT 21
""")
NAMED_AT_MOST = 20


def upgrade() -> None:
    # Hash sessions last, because M1 cannot find them afterwards.
    update_in_batches(
        "sessions",
        "token_hash = sha256(convert_to(id::text, 'UTF8')), id = gen_random_uuid()",
        where="token_hash IS NULL",
    )
    set_not_null("sessions", ["token_hash"])
    create_indexes({"uq_sessions_token_hash": "sessions (token_hash)"}, kind="UNIQUE INDEX")
    drop_indexes(["ix_workspaces_owner_user_id"])
    op.execute(
        "ALTER TABLE sessions ADD CONSTRAINT uq_sessions_token_hash UNIQUE USING INDEX uq_sessions_token_hash"
    )
    op.execute("ALTER TABLE users DROP CONSTRAINT uq_users_username")
    carry_over.remove()
    op.execute("ALTER TABLE workspaces DROP COLUMN status")


def downgrade() -> None:
    refuse_downgrade(op.get_bind())
    with each_statement_by_itself():
        op.execute("ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS status text")
        op.execute("ALTER TABLE sessions DROP CONSTRAINT IF EXISTS uq_sessions_token_hash")
        op.execute("ALTER TABLE sessions ALTER token_hash DROP NOT NULL")
    update_in_batches("workspaces", f"status = {STATUS_OF_PHASE}", where="status IS NULL")
    add_checks("workspaces", {"ck_workspaces_status": M1_STATUSES})
    set_not_null("workspaces", ["status"])
    # No cookie works with M1.
    update_in_batches("sessions", "revoked_at = now()", where="revoked_at IS NULL")
    create_indexes({"ix_workspaces_owner_user_id": "workspaces (owner_user_id)"})
    create_indexes({"uq_users_username": "users (username)"}, kind="UNIQUE INDEX")
    op.execute("ALTER TABLE users ADD CONSTRAINT uq_users_username UNIQUE USING INDEX uq_users_username")
    carry_over.install()


def refuse_downgrade(connection: Connection) -> None:
    ids = [str(found) for found in connection.scalars(NOT_FOR_M1)]
    if ids:
        more = " and more" if len(ids) > NAMED_AT_MOST else ""
        raise MigrationRefused(
            "The previous version cannot open homes that are archived or kept outside of local directories. "
            f"Restore them with CodeHub first, or delete them: {', '.join(ids[:NAMED_AT_MOST])}{more}."
        )
