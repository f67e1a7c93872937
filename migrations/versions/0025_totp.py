"""A second factor for local accounts: the secret of an authenticator app, and recovery codes."""

from alembic import op

revision = "0025_totp"
down_revision = "0021_sessions"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE authenticators (
            user_id uuid CONSTRAINT pk_authenticators PRIMARY KEY
                CONSTRAINT fk_authenticators_user_id_users REFERENCES users (id) ON DELETE CASCADE,
            secret text NOT NULL,
            created_at timestamp with time zone NOT NULL,
            enabled_at timestamp with time zone,
            last_step bigint
        )
        """
    )
    op.execute(
        """
        CREATE TABLE recovery_codes (
            user_id uuid NOT NULL
                CONSTRAINT fk_recovery_codes_user_id_users REFERENCES users (id) ON DELETE CASCADE,
            code_hash bytea NOT NULL,
            CONSTRAINT pk_recovery_codes PRIMARY KEY (user_id, code_hash)
        )
        """
    )


def downgrade() -> None:
    op.execute("DROP TABLE recovery_codes")
    op.execute("DROP TABLE authenticators")
