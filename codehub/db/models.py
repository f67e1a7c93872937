"""The tables. Enumerations are text with a CHECK, because a PostgreSQL enum is hard to change."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    MetaData,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from codehub.db import predicates
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """The base of all tables; it names every constraint, so that migrations can refer to it."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map: ClassVar = {
        UUID: Uuid(),
        bytes: LargeBinary(),
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB(),
        str: Text(),
    }


def _one_of(column: str, words: Iterable[str]) -> CheckConstraint:
    choices = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({choices})", name=column)


def _partial_index(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, postgresql_where=text(where))


class User(Base):
    """A person who signs in."""

    __tablename__ = "users"
    __table_args__ = (
        Index("uq_users_username_lower", func.lower(text("username")), unique=True),
        _one_of("role", ("user", "admin")),
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


class Workspace(Base):
    """What its owner wants, and what was last observed; docs/contract.md says who writes which column."""

    __tablename__ = "workspaces"
    __table_args__ = (
        _one_of("phase", Phase),
        _one_of("operation", Operation),
        _one_of("desired_state", DesiredState),
        _one_of("error_reason", ErrorReason),
        _one_of("recover_choice", RecoverChoice),
        CheckConstraint("(recover_choice IS NULL) = (recover_requested_at IS NULL)", name="recover_is_dated"),
        CheckConstraint(
            "recover_archive_key IS NULL OR recover_choice = 'restore_archive'", name="recover_archive"
        ),
        CheckConstraint(
            "phase <> 'ERROR' OR (operation = 'NONE' AND error_reason IS NOT NULL)",
            name="error_ends_operation",
        ),
        CheckConstraint("(operation = 'NONE') = (op_started_at IS NULL)", name="operation_has_started"),
        CheckConstraint("(desired_state = 'DELETED') = (deleted_at IS NOT NULL)", name="deletion_is_desired"),
        CheckConstraint("deleted_at IS NOT NULL OR NOT purge", name="purge_is_deletion"),
        CheckConstraint("error_count >= 0", name="error_count"),
        CheckConstraint("standby_ttl_seconds > 0", name="standby_ttl_seconds"),
        CheckConstraint("archive_ttl_seconds > 0", name="archive_ttl_seconds"),
        # No index on last_access_at or observed_at: writing those stays a cheap in-page (HOT) update.
        _partial_index("ix_workspaces_idle_running", "phase_changed_at", where=predicates.IDLE_RUNNING),
        _partial_index("ix_workspaces_idle_standby", "phase_changed_at", where=predicates.IDLE_STANDBY),
        _partial_index("ix_workspaces_running", "owner_user_id", where=predicates.COUNTS_AS_RUNNING),
        _partial_index("ix_workspaces_not_converged", "id", where=predicates.NOT_CONVERGED),
        _partial_index("ix_workspaces_being_deleted", "id", where=predicates.BEING_DELETED),
        _partial_index(
            "ix_workspaces_operation", "operation", "op_started_at", where=predicates.OPERATION_IN_PROGRESS
        ),
        _partial_index("ix_workspaces_error", "phase_changed_at", where=predicates.NEEDS_PERSON),
        _partial_index("ix_workspaces_visible", "created_at", "id", where=predicates.VISIBLE),
        _partial_index(
            "ix_workspaces_visible_owner", "owner_user_id", "created_at", "id", where=predicates.VISIBLE
        ),
        _partial_index(
            "ix_workspaces_deleted_owner", "owner_user_id", "deleted_at", "id", where=predicates.DELETED
        ),
        _partial_index("ix_workspaces_deleted_at", "deleted_at", where=predicates.DELETED),
        _partial_index("ix_workspaces_recovering", "id", where=predicates.RECOVERING),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    owner_user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id"))
    name: Mapped[str]
    description: Mapped[str | None]
    memo: Mapped[str | None]
    image_ref: Mapped[str]
    instance_backend: Mapped[str]
    storage_backend: Mapped[str]
    home_store_key: Mapped[str]
    home_ctx: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'::jsonb"))
    conditions: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'::jsonb"))
    observed_at: Mapped[datetime | None]
    phase: Mapped[str]
    phase_changed_at: Mapped[datetime]
    operation: Mapped[str] = mapped_column(server_default="NONE")
    op_started_at: Mapped[datetime | None]
    archive_op_id: Mapped[UUID | None]
    archive_key: Mapped[str | None]
    error_reason: Mapped[str | None]
    error_message: Mapped[str | None]
    error_count: Mapped[int] = mapped_column(server_default="0")
    desired_state: Mapped[str]
    purge: Mapped[bool] = mapped_column(server_default=text("false"))
    recover_choice: Mapped[str | None]
    recover_archive_key: Mapped[str | None]
    recover_requested_at: Mapped[datetime | None]
    recover_handled_at: Mapped[datetime | None]
    waiting_for: Mapped[list[str] | None] = mapped_column(ARRAY(Text()))
    waiting_since: Mapped[datetime | None]
    retry_at: Mapped[datetime | None]
    # A trigger increments it.
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    last_access_at: Mapped[datetime | None]
    standby_ttl_seconds: Mapped[int | None]
    archive_ttl_seconds: Mapped[int | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    deleted_at: Mapped[datetime | None]


class IdempotencyKey(Base):
    """What a request with a key created, so that repeating it creates nothing."""

    __tablename__ = "idempotency_keys"

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    request_hash: Mapped[bytes]
    workspace_id: Mapped[UUID]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), index=True)


class Archive(Base):
    """An archive in S3. No foreign key: it may outlive the row of its workspace."""

    __tablename__ = "archives"
    __table_args__ = (
        _partial_index("ix_archives_orphan_since", "orphan_since", where=predicates.ORPHANED),
        _partial_index("ix_archives_deleted_at", "deleted_at", where=predicates.COLLECTED),
    )

    key: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[UUID] = mapped_column(index=True)
    archive_op_id: Mapped[UUID]
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    sha256: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    verified_at: Mapped[datetime | None]
    orphan_since: Mapped[datetime | None]
    # A recovery chose another one: this one is kept until its workspace is deleted.
    given_up_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]


class WorkspaceEvent(Base):
    """The audit trail. No foreign key: it outlives the row of its workspace."""

    __tablename__ = "workspace_events"
    __table_args__ = (Index(None, "workspace_id", "id"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    workspace_id: Mapped[UUID]
    at: Mapped[datetime] = mapped_column(index=True)
    kind: Mapped[str]
    actor: Mapped[str]
    operation: Mapped[str | None]
    phase: Mapped[str | None]
    error_reason: Mapped[str | None]
    detail: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'::jsonb"))


class WorkspaceUsage(Base):
    """A quarter of an hour in which a workspace was used. No foreign key: rows are removed after days."""

    __tablename__ = "workspace_usage"

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    bucket: Mapped[datetime] = mapped_column(primary_key=True, index=True)


class HomeStore(Base):
    """The engine or directory that holds all homes; at most one row."""

    __tablename__ = "home_store"
    __table_args__ = (CheckConstraint("only_row", name="only_row"),)

    only_row: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    backend: Mapped[str]
    identity: Mapped[str]
    # Where it was when it was recorded; for people.
    location: Mapped[str]
    recorded_at: Mapped[datetime] = mapped_column(server_default=func.now())
