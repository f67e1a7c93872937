"""Sign-ins through an identity provider: those under way, and which account belongs to which identity."""

from alembic import op

revision = "0024_single_sign_on"
down_revision = "0018_purge_notices"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE oidc_attempts (
            state_hash bytea CONSTRAINT pk_oidc_attempts PRIMARY KEY,
            browser_hash bytea NOT NULL,
            nonce text NOT NULL,
            verifier text NOT NULL,
            next_path text NOT NULL,
            expires_at timestamp with time zone NOT NULL
        )
        """
    )
    op.execute("CREATE INDEX ix_oidc_attempts_expires_at ON oidc_attempts (expires_at)")
    op.execute(
        """
        CREATE TABLE oidc_identities (
            issuer text NOT NULL,
            subject text NOT NULL,
            user_id uuid NOT NULL
                CONSTRAINT fk_oidc_identities_user_id_users REFERENCES users (id) ON DELETE CASCADE,
            created_at timestamp with time zone NOT NULL,
            signed_in_at timestamp with time zone NOT NULL,
            CONSTRAINT pk_oidc_identities PRIMARY KEY (issuer, subject)
        )
        """
    )
    op.execute("CREATE INDEX ix_oidc_identities_user_id ON oidc_identities (user_id)")


def downgrade() -> None:
    op.execute("DROP TABLE oidc_identities")
    op.execute("DROP TABLE oidc_attempts")
