"""The tables of accounts, sessions and tokens."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from codehub.db.models.base import Base, one_of


class User(Base):
    """A person who signs in."""

    __tablename__ = "users"
    __table_args__ = (
        Index("uq_users_username_lower", func.lower(text("username")), unique=True),
        one_of("role", ("user", "admin")),
        CheckConstraint("failed_login_count >= 0", name="failed_login_count"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    username: Mapped[str]
    password_hash: Mapped[str]
    role: Mapped[str] = mapped_column(server_default="user")
    disabled_at: Mapped[datetime | None]
    failed_login_count: Mapped[int] = mapped_column(server_default="0")
    locked_until: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class SignInFailure(Base):
    """Wrong passwords by place, address or account; the key is a hash."""

    __tablename__ = "sign_in_failures"

    key: Mapped[bytes] = mapped_column(primary_key=True)
    user_id: Mapped[UUID | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    count: Mapped[int]
    failed_at: Mapped[datetime] = mapped_column(index=True)
    locked_until: Mapped[datetime | None]


class KnownPlace(Base):
    """An address or device from which a user has signed in, as a hash."""

    __tablename__ = "known_places"

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    place: Mapped[bytes] = mapped_column(primary_key=True)
    seen_at: Mapped[datetime]


class Session(Base):
    """A browser session; only the hash of its token is stored."""

    __tablename__ = "sessions"
    __table_args__ = (UniqueConstraint("token_hash"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[bytes]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime] = mapped_column(index=True)
    revoked_at: Mapped[datetime | None]
    user_agent: Mapped[str | None]
    last_seen_at: Mapped[datetime | None]
    # When the password was last entered; null means at sign-in.
    confirmed_at: Mapped[datetime | None]
    # How long it may be idle; null means no idle timeout.
    idle_seconds: Mapped[int | None]


class WorkspaceSession(Base):
    """A session on the origin of one workspace or port; it has no token until its ticket is used."""

    __tablename__ = "workspace_sessions"
    __table_args__ = (UniqueConstraint("token_hash"),)

    ticket_hash: Mapped[bytes] = mapped_column(primary_key=True)
    ticket_expires_at: Mapped[datetime]
    session_id: Mapped[UUID] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"), index=True)
    workspace_id: Mapped[UUID] = mapped_column(ForeignKey("workspaces.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[bytes | None]
    # The port of a program in the workspace; null means the IDE.
    port: Mapped[int | None]


class ApiToken(Base):
    """A personal token for programs, shown once and stored hashed."""

    __tablename__ = "api_tokens"
    __table_args__ = (
        UniqueConstraint("token_hash"),
        Index("ix_api_tokens_ended_at", text("least(expires_at, revoked_at)")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    token_hash: Mapped[bytes]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    # Null means all rights of its owner (tokens of older releases).
    scopes: Mapped[list[str] | None] = mapped_column(ARRAY(Text()))
    # The workspaces that it is limited to; null means all.
    workspace_ids: Mapped[list[UUID] | None] = mapped_column(ARRAY(Uuid()))


class Authenticator(Base):
    """The authenticator app of a local account. Codes are computed from the secret, so it is not hashed."""

    __tablename__ = "authenticators"

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    secret: Mapped[str]
    created_at: Mapped[datetime]
    enabled_at: Mapped[datetime | None]
    # The time step of the last accepted code; it and all earlier ones are used up.
    last_step: Mapped[int | None] = mapped_column(BigInteger)


class RecoveryCode(Base):
    """A code that replaces a lost app; it is deleted when it is used."""

    __tablename__ = "recovery_codes"

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    code_hash: Mapped[bytes] = mapped_column(primary_key=True)


class OidcAttempt(Base):
    """A sign-in that a browser began at the identity provider; usable once."""

    __tablename__ = "oidc_attempts"

    state_hash: Mapped[bytes] = mapped_column(primary_key=True)
    browser_hash: Mapped[bytes]
    nonce: Mapped[str]
    verifier: Mapped[str]
    next_path: Mapped[str]
    # Whether the person must authenticate again, even with a session at the provider.
    fresh: Mapped[bool] = mapped_column(server_default=text("false"))
    expires_at: Mapped[datetime] = mapped_column(index=True)


class OidcIdentity(Base):
    """The account of a person at the identity provider."""

    __tablename__ = "oidc_identities"

    issuer: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    signed_in_at: Mapped[datetime]
