"""Add what M2 needs to the tables of M1, without rewriting or reading them."""

from collections.abc import Sequence

from alembic import op
from sqlalchemy import text

from migrations import carry_over
from migrations.errors import MigrationRefused

revision = "0002_expand"
down_revision = "0001_m1"

# Nullable or with a constant default, so that PostgreSQL only writes its catalog.
NEW_COLUMNS = {
    "users": {
        "role": "text NOT NULL DEFAULT 'user'",
        "disabled_at": "timestamptz",
        "failed_login_count": "integer NOT NULL DEFAULT 0",
        "locked_until": "timestamptz",
    },
    "sessions": {"token_hash": "bytea"},
    "workspaces": {
        "conditions": "jsonb NOT NULL DEFAULT '{}'::jsonb",
        "observed_at": "timestamptz",
        "phase": "text",
        "phase_changed_at": "timestamptz",
        "operation": "text NOT NULL DEFAULT 'NONE'",
        "op_started_at": "timestamptz",
        "archive_op_id": "uuid",
        "archive_key": "text",
        "error_reason": "text",
        "error_message": "text",
        "error_count": "integer NOT NULL DEFAULT 0",
        "desired_state": "text",
        "purge": "boolean NOT NULL DEFAULT false",
        "last_access_at": "timestamptz",
        "standby_ttl_seconds": "integer",
        "archive_ttl_seconds": "integer",
    },
}

NEW_TABLES = {
    "api_tokens": """
        id uuid NOT NULL CONSTRAINT pk_api_tokens PRIMARY KEY,
        user_id uuid NOT NULL CONSTRAINT fk_api_tokens_user_id_users REFERENCES users (id) ON DELETE CASCADE,
        name text NOT NULL,
        token_hash bytea NOT NULL CONSTRAINT uq_api_tokens_token_hash UNIQUE,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        revoked_at timestamptz,
        last_used_at timestamptz
    """,
    "archives": """
        key text NOT NULL CONSTRAINT pk_archives PRIMARY KEY,
        workspace_id uuid NOT NULL,
        archive_op_id uuid NOT NULL,
        size_bytes bigint,
        sha256 text,
        created_at timestamptz NOT NULL DEFAULT now(),
        verified_at timestamptz,
        orphan_since timestamptz,
        deleted_at timestamptz
    """,
    "workspace_events": """
        id bigint NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_workspace_events PRIMARY KEY,
        workspace_id uuid NOT NULL,
        at timestamptz NOT NULL,
        kind text NOT NULL,
        actor text NOT NULL,
        operation text,
        phase text,
        error_reason text,
        detail jsonb NOT NULL DEFAULT '{}'::jsonb
    """,
}

NEW_TABLES_INDEXES = (
    "ix_api_tokens_user_id ON api_tokens (user_id)",
    "ix_archives_workspace_id ON archives (workspace_id)",
    (
        "ix_archives_orphan_since ON archives (orphan_since) "
        "WHERE orphan_since IS NOT NULL AND deleted_at IS NULL"
    ),
    "ix_workspace_events_workspace_id_id ON workspace_events (workspace_id, id)",
)

SAME_BUT_FOR_CASE = text(
    "SELECT string_agg(username, ', ' ORDER BY username) FROM users "
    "GROUP BY lower(username) HAVING count(*) > 1"
)

# The columns of 0008.
LATER_COLUMNS = {
    "sessions": ("user_agent", "last_seen_at"),
    "workspaces": ("recover_choice", "recover_requested_at", "recover_handled_at", "version"),
}
COLUMNS = text(
    "SELECT column_name FROM information_schema.columns "
    "WHERE table_schema = current_schema() AND table_name = :table"
)
SET_ASIDE = "m1_"


def upgrade() -> None:
    refuse_ambiguous_usernames()
    for table, columns in NEW_COLUMNS.items():
        set_aside(table, [*columns, *LATER_COLUMNS.get(table, ())])
        additions = ", ".join(f"ADD COLUMN {name} {definition}" for name, definition in columns.items())
        op.execute(f"ALTER TABLE {table} {additions}")
    # Missing in databases that an earlier version converted to 0001.
    op.execute("ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS home_ctx jsonb")
    op.execute("ALTER TABLE workspaces ALTER home_ctx SET DEFAULT '{}'::jsonb")
    for table, definition in NEW_TABLES.items():
        op.execute(f"CREATE TABLE {table} ({definition})")
    for index in NEW_TABLES_INDEXES:
        op.execute(f"CREATE INDEX {index}")
    carry_over.install()


def downgrade() -> None:
    carry_over.remove()
    for table in reversed(NEW_TABLES):
        op.execute(f"DROP TABLE {table}")
    for table, columns in NEW_COLUMNS.items():
        op.execute(f"ALTER TABLE {table} " + ", ".join(f"DROP COLUMN {name}" for name in columns))
    op.execute("ALTER TABLE workspaces ALTER home_ctx DROP DEFAULT")
    for table in NEW_COLUMNS:
        bring_back(table)


def set_aside(table: str, names: Sequence[str]) -> None:
    """Rename columns of M1 whose names are needed; `bring_back` restores them."""
    for name in op.get_bind().scalars(COLUMNS, {"table": table}).all():
        if name in names:
            op.execute(f"ALTER TABLE {table} RENAME {name} TO {SET_ASIDE}{name}")


def bring_back(table: str) -> None:
    for name in op.get_bind().scalars(COLUMNS, {"table": table}).all():
        if name.startswith(SET_ASIDE):
            op.execute(f"ALTER TABLE {table} RENAME {name} TO {name.removeprefix(SET_ASIDE)}")


def refuse_ambiguous_usernames() -> None:
    """Refuse user names that differ only in case: M1 allowed them, and only a person can decide."""
    groups = op.get_bind().scalars(SAME_BUT_FOR_CASE).all()
    if groups:
        names = "; ".join(groups)
        raise MigrationRefused(f"These user names differ only in case, rename all but one of each: {names}.")
