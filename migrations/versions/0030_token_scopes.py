"""Tokens: what they may do, and for which workspaces."""

from alembic import op

from migrations.steps import each_statement_by_itself

revision = "0030_token_scopes"
down_revision = "0029_origin_numbers"


def upgrade() -> None:
    with each_statement_by_itself():
        # Null for tokens of older releases, which may do whatever their owner may.
        op.execute("ALTER TABLE api_tokens ADD COLUMN IF NOT EXISTS scopes text[]")
        # Null means all workspaces of the owner.
        op.execute("ALTER TABLE api_tokens ADD COLUMN IF NOT EXISTS workspace_ids uuid[]")


def downgrade() -> None:
    # A limited token must not become an unlimited one.
    op.execute(
        "UPDATE api_tokens SET revoked_at = now() "
        "WHERE revoked_at IS NULL AND (scopes IS NOT NULL OR workspace_ids IS NOT NULL)"
    )
    op.execute("ALTER TABLE api_tokens DROP COLUMN IF EXISTS scopes, DROP COLUMN IF EXISTS workspace_ids")
