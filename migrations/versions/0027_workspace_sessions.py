"""Sessions on the origins of workspaces, and the tickets that open them."""

import sqlalchemy as sa
from alembic import op

revision = "0027_workspace_sessions"
down_revision = "0023_egress"


def upgrade() -> None:
    op.create_table(
        "workspace_sessions",
        sa.Column("ticket_hash", sa.LargeBinary(), nullable=False),
        sa.Column("ticket_expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("ticket_hash", name="pk_workspace_sessions"),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name="fk_workspace_sessions_session_id_sessions",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name="fk_workspace_sessions_workspace_id_workspaces",
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint("token_hash", name="uq_workspace_sessions_token_hash"),
        if_not_exists=True,
    )
    for column in ("session_id", "workspace_id"):
        op.create_index(f"ix_workspace_sessions_{column}", "workspace_sessions", [column], if_not_exists=True)


def downgrade() -> None:
    op.drop_table("workspace_sessions", if_exists=True)
