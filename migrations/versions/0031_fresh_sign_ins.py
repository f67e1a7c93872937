"""Sign-ins through an identity provider that take the place of entering the password again."""

from alembic import op

revision = "0031_fresh_sign_ins"
down_revision = "0030_token_scopes"


def upgrade() -> None:
    op.execute("ALTER TABLE oidc_attempts ADD COLUMN IF NOT EXISTS fresh boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    op.execute("ALTER TABLE oidc_attempts DROP COLUMN IF EXISTS fresh")
