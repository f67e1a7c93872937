"""The tables of workspaces, their archives and their history."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from codehub.db import predicates
from codehub.db.models.base import Base, one_of, partial_index
from codehub.domain.egress import EgressMode
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase


class Workspace(Base):
    """What its owner wants, and what was last observed; docs/contract.md says who writes which column."""

    __tablename__ = "workspaces"
    __table_args__ = (
        one_of("phase", Phase),
        one_of("operation", Operation),
        one_of("desired_state", DesiredState),
        one_of("error_reason", ErrorReason),
        one_of("recover_choice", RecoverChoice),
        one_of("egress_mode", EgressMode),
        one_of("egress_limit_mode", EgressMode),
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
        # No index on last_access_at or observed_at, so that writing them stays a cheap in-page (HOT) update.
        partial_index("ix_workspaces_idle_running", "phase_changed_at", where=predicates.IDLE_RUNNING),
        partial_index("ix_workspaces_idle_standby", "phase_changed_at", where=predicates.IDLE_STANDBY),
        partial_index("ix_workspaces_running", "owner_user_id", where=predicates.COUNTS_AS_RUNNING),
        partial_index("ix_workspaces_not_converged", "id", where=predicates.NOT_CONVERGED),
        partial_index("ix_workspaces_being_deleted", "id", where=predicates.BEING_DELETED),
        partial_index(
            "ix_workspaces_operation", "operation", "op_started_at", where=predicates.OPERATION_IN_PROGRESS
        ),
        partial_index("ix_workspaces_error", "phase_changed_at", where=predicates.NEEDS_PERSON),
        partial_index("ix_workspaces_visible", "created_at", "id", where=predicates.VISIBLE),
        partial_index(
            "ix_workspaces_visible_owner", "owner_user_id", "created_at", "id", where=predicates.VISIBLE
        ),
        partial_index(
            "ix_workspaces_deleted_owner", "owner_user_id", "deleted_at", "id", where=predicates.DELETED
        ),
        partial_index("ix_workspaces_deleted_at", "deleted_at", where=predicates.DELETED),
        partial_index("ix_workspaces_recovering", "id", where=predicates.RECOVERING),
        Index(
            "uq_workspaces_origin_number",
            "origin_number",
            unique=True,
            postgresql_where=text("origin_number IS NOT NULL"),
        ),
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
    # Determines its port in port mode; never reused for another workspace.
    origin_number: Mapped[int | None]
    last_access_at: Mapped[datetime | None]
    standby_ttl_seconds: Mapped[int | None]
    archive_ttl_seconds: Mapped[int | None]
    # The network policy that the owner chose, and the one that an administrator set as its limit.
    egress_mode: Mapped[str | None]
    egress_names: Mapped[list[str] | None] = mapped_column(ARRAY(Text()))
    egress_limit_mode: Mapped[str | None]
    egress_limit_names: Mapped[list[str] | None] = mapped_column(ARRAY(Text()))
    # The shared ports; codehub/domain/port_shares.py defines the format.
    port_shares: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'::jsonb"))
    disk_used_bytes: Mapped[int | None] = mapped_column(BigInteger)
    disk_measured_at: Mapped[datetime | None]
    # Whether the last measurement ended before its time was up.
    disk_complete: Mapped[bool | None]
    # An administrator's limit, which replaces the installation's; zero means no limit.
    disk_limit_bytes: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    deleted_at: Mapped[datetime | None]


class IdempotencyKey(Base):
    """The result of a request with an idempotency key, so that repeating it creates nothing."""

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
        partial_index("ix_archives_orphan_since", "orphan_since", where=predicates.ORPHANED),
        partial_index("ix_archives_deleted_at", "deleted_at", where=predicates.COLLECTED),
    )

    key: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[UUID] = mapped_column(index=True)
    archive_op_id: Mapped[UUID]
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    sha256: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    verified_at: Mapped[datetime | None]
    orphan_since: Mapped[datetime | None]
    # A recovery chose another archive: this one is kept until its workspace is deleted.
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
