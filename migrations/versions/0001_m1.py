"""The schema of M1."""

from alembic import op
from sqlalchemy import Connection, text

from migrations.errors import MigrationRefused

revision = "0001_m1"
down_revision = None

USERS = """
CREATE TABLE users (
    id uuid NOT NULL CONSTRAINT pk_users PRIMARY KEY,
    username text NOT NULL CONSTRAINT uq_users_username UNIQUE,
    password_hash text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
)
"""

# The id is the token in the cookie.
SESSIONS = """
CREATE TABLE sessions (
    id uuid NOT NULL CONSTRAINT pk_sessions PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT fk_sessions_user_id_users REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz
)
"""

WORKSPACES = """
CREATE TABLE workspaces (
    id uuid NOT NULL CONSTRAINT pk_workspaces PRIMARY KEY,
    owner_user_id uuid NOT NULL CONSTRAINT fk_workspaces_owner_user_id_users REFERENCES users (id),
    name text NOT NULL,
    description text,
    memo text,
    image_ref text NOT NULL,
    instance_backend text NOT NULL,
    storage_backend text NOT NULL,
    home_store_key text NOT NULL,
    home_ctx jsonb,
    status text NOT NULL CONSTRAINT ck_workspaces_status CHECK (status IN (
        'CREATED', 'PROVISIONING', 'RUNNING', 'STOPPING', 'STOPPED', 'DELETING', 'ERROR', 'DELETED')),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
)
"""

IN_USE = text("SELECT EXISTS (SELECT FROM users) OR EXISTS (SELECT FROM workspaces)")


def upgrade() -> None:
    for table in (USERS, SESSIONS, WORKSPACES):
        op.execute(table)
    op.execute("CREATE INDEX ix_workspaces_owner_user_id ON workspaces (owner_user_id)")
    op.execute("CREATE INDEX ix_sessions_user_id ON sessions (user_id)")


def downgrade() -> None:
    refuse_downgrade(op.get_bind())
    for table in ("workspaces", "sessions", "users"):
        op.execute(f"DROP TABLE {table}")


def refuse_downgrade(connection: Connection) -> None:
    if connection.scalar(IN_USE):
        raise MigrationRefused(
            "Going back beyond 0001_m1 would drop every user and workspace. Drop the database yourself if "
            "that is what you want."
        )
