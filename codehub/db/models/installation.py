"""The tables of the installation as a whole: audit log, connections, home store."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Identity,
    Index,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from codehub.db.models.base import Base, one_of
from codehub.domain.egress import Verdict


class AuditEntry(Base):
    """The audit log of accounts and administration; triggers refuse to change or remove a row."""

    __tablename__ = "audit_log"
    __table_args__ = (
        one_of("outcome", ("success", "failure")),
        Index("ix_audit_log_action_id", "action", "id"),
        Index("ix_audit_log_actor_lower", text("lower(actor)"), "id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
    action: Mapped[str]
    outcome: Mapped[str]
    actor: Mapped[str]
    actor_id: Mapped[UUID | None]
    address: Mapped[str | None]
    target: Mapped[str | None]
    target_id: Mapped[str | None]
    detail: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'::jsonb"))


class EgressLog(Base):
    """Connections of a workspace to one name in one hour. No foreign key: rows are removed after days."""

    __tablename__ = "egress_log"
    __table_args__ = (one_of("verdict", Verdict),)

    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    hour: Mapped[datetime] = mapped_column(primary_key=True, index=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    port: Mapped[int] = mapped_column(primary_key=True)
    verdict: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)


class HomeStore(Base):
    """The engine or directory that holds all homes; at most one row."""

    __tablename__ = "home_store"
    __table_args__ = (CheckConstraint("only_row", name="only_row"),)

    only_row: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    backend: Mapped[str]
    identity: Mapped[str]
    # Its location when it was recorded, for people.
    location: Mapped[str]
    recorded_at: Mapped[datetime] = mapped_column(server_default=func.now())
