"""Rows of sessions and API tokens, found by the hash of the secret; the secret itself is not stored."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    DateTime,
    LargeBinary,
    Select,
    bindparam,
    delete,
    func,
    insert,
    null,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from codehub.db.models import ApiToken, Session, User

# The minute of the last use is enough, and saves a write per request.
LAST_USE_RESOLUTION = timedelta(minutes=1)


@dataclass(frozen=True)
class Holder:
    """The user who holds a credential."""

    credential_id: UUID
    expires_at: datetime | None
    used_at: datetime | None
    user_id: UUID
    username: str
    role: str
    # When the password was last entered; None for a token.
    confirmed_at: datetime | None = None
    # The limits of a token; None means no limit.
    scopes: list[str] | None = None
    workspace_ids: list[UUID] | None = None


@dataclass(frozen=True)
class SessionView:
    """A browser session, as its user sees it."""

    id: UUID
    created_at: datetime
    expires_at: datetime
    last_seen_at: datetime | None
    user_agent: str | None


@dataclass(frozen=True)
class TokenView:
    """A personal token, as its user sees it."""

    id: UUID
    name: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    # None for tokens of older releases, which have all rights of their owner.
    scopes: list[str] | None = None
    # None means all workspaces.
    workspaces: list[UUID] | None = None


def live_session(now: datetime | BindParameter[datetime]) -> tuple[ColumnElement[bool], ...]:
    used_at = func.coalesce(Session.last_seen_at, Session.created_at)
    idle_until = used_at + func.make_interval(0, 0, 0, 0, 0, 0, Session.idle_seconds)
    in_use = or_(Session.idle_seconds.is_(None), idle_until > now)
    return (Session.revoked_at.is_(None), Session.expires_at > now, in_use)


def live_token(now: datetime | BindParameter[datetime]) -> tuple[ColumnElement[bool], ...]:
    unexpired = or_(ApiToken.expires_at.is_(None), ApiToken.expires_at > now)
    return (ApiToken.revoked_at.is_(None), unexpired)


# Built once: building is most of the cost of a statement, and every request runs one of these.
_TOKEN_HASH, _NOW = (
    bindparam("token_hash", type_=LargeBinary()),
    bindparam("now", type_=DateTime(timezone=True)),
)
SELECT_SESSION_HOLDER = (
    select(
        Session.id,
        Session.expires_at,
        Session.last_seen_at,
        User.id,
        User.username,
        User.role,
        func.coalesce(Session.confirmed_at, Session.created_at),
    )
    .join(User, User.id == Session.user_id)
    .where(Session.token_hash == _TOKEN_HASH, *live_session(_NOW), User.disabled_at.is_(None))
)
SELECT_TOKEN_HOLDER = (
    select(
        ApiToken.id,
        ApiToken.expires_at,
        ApiToken.last_used_at,
        User.id,
        User.username,
        User.role,
        null(),
        ApiToken.scopes,
        ApiToken.workspace_ids,
    )
    .join(User, User.id == ApiToken.user_id)
    .where(ApiToken.token_hash == _TOKEN_HASH, *live_token(_NOW), User.disabled_at.is_(None))
)


async def use_session(session: AsyncSession, token_hash: bytes, now: datetime) -> Holder | None:
    """Return the holder of the session; None unless it is live and its user enabled."""
    holder = await _find_holder(session, SELECT_SESSION_HOLDER, token_hash, now)
    if holder is not None and _is_stale(holder.used_at, now):
        await _write_use(session, Session, Session.last_seen_at, holder, now)
    return holder


async def use_token(session: AsyncSession, token_hash: bytes, now: datetime) -> Holder | None:
    """Return the holder of the token; None unless it is live and its user enabled."""
    holder = await _find_holder(session, SELECT_TOKEN_HOLDER, token_hash, now)
    if holder is not None and _is_stale(holder.used_at, now):
        await _write_use(session, ApiToken, ApiToken.last_used_at, holder, now)
    return holder


def _is_stale(used_at: datetime | None, now: datetime) -> bool:
    return used_at is None or used_at <= now - LAST_USE_RESOLUTION


async def _find_holder(
    session: AsyncSession, statement: Select[*tuple[Any, ...]], token_hash: bytes, now: datetime
) -> Holder | None:
    row = (await session.execute(statement, {"token_hash": token_hash, "now": now})).one_or_none()
    return Holder(*row) if row else None


async def _write_use(
    session: AsyncSession,
    table: type[Session | ApiToken],
    used_at: InstrumentedAttribute[datetime | None],
    holder: Holder,
    now: datetime,
) -> None:
    # The statement checks again, so that only one of many concurrent requests writes.
    stale = or_(used_at.is_(None), used_at <= now - LAST_USE_RESOLUTION)
    this_one = update(table).where(table.id == holder.credential_id, stale)
    await session.execute(this_one.values({used_at.key: now}))


async def find_valid(session: AsyncSession, ids: Collection[str], now: datetime) -> set[str]:
    """Return the live sessions and tokens of enabled users among these, in one query."""
    wanted = [UUID(each) for each in ids]
    sessions = select(Session.id).join(User, User.id == Session.user_id).where(User.disabled_at.is_(None))
    tokens = select(ApiToken.id).join(User, User.id == ApiToken.user_id).where(User.disabled_at.is_(None))
    found = await session.scalars(
        union_all(
            sessions.where(Session.id.in_(wanted), *live_session(now)),
            tokens.where(ApiToken.id.in_(wanted), *live_token(now)),
        )
    )
    return {str(each) for each in found}


async def insert_session(
    session: AsyncSession,
    user_id: UUID,
    new: SessionView,
    token_hash: bytes,
    idle_timeout: timedelta | None = None,
) -> None:
    await session.execute(
        insert(Session).values(
            id=new.id,
            user_id=user_id,
            token_hash=token_hash,
            created_at=new.created_at,
            expires_at=new.expires_at,
            last_seen_at=new.last_seen_at,
            user_agent=new.user_agent,
            idle_seconds=None if idle_timeout is None else round(idle_timeout.total_seconds()),
        )
    )


async def confirm_session(session: AsyncSession, session_id: UUID, now: datetime) -> None:
    """Record that the password was entered again."""
    await session.execute(update(Session).where(Session.id == session_id).values(confirmed_at=now))


async def insert_token(session: AsyncSession, user_id: UUID, new: TokenView, token_hash: bytes) -> None:
    await session.execute(
        insert(ApiToken).values(
            id=new.id,
            user_id=user_id,
            name=new.name,
            token_hash=token_hash,
            created_at=new.created_at,
            expires_at=new.expires_at,
            scopes=new.scopes,
            workspace_ids=new.workspaces,
        )
    )


async def list_live_sessions(session: AsyncSession, user_id: UUID, now: datetime) -> list[SessionView]:
    """Return the live sessions, newest first."""
    columns = (
        Session.id,
        Session.created_at,
        Session.expires_at,
        Session.last_seen_at,
        Session.user_agent,
    )
    statement = (
        select(*columns)
        .where(Session.user_id == user_id, *live_session(now))
        .order_by(Session.created_at.desc(), Session.id)
    )
    return [SessionView(*row) for row in await session.execute(statement)]


async def list_unrevoked_tokens(session: AsyncSession, user_id: UUID) -> list[TokenView]:
    """Return the tokens that were not revoked, newest first; expired ones too, so that people see why."""
    columns = (
        ApiToken.id,
        ApiToken.name,
        ApiToken.created_at,
        ApiToken.expires_at,
        ApiToken.last_used_at,
        ApiToken.revoked_at,
        ApiToken.scopes,
        ApiToken.workspace_ids,
    )
    statement = (
        select(*columns)
        .where(ApiToken.user_id == user_id, ApiToken.revoked_at.is_(None))
        .order_by(ApiToken.created_at.desc(), ApiToken.id)
    )
    return [TokenView(*row) for row in await session.execute(statement)]


async def count_live_tokens(session: AsyncSession, user_id: UUID, now: datetime) -> int:
    statement = select(func.count()).where(ApiToken.user_id == user_id, *live_token(now))
    return (await session.scalars(statement)).one()


async def revoke_sessions(
    session: AsyncSession,
    now: datetime,
    *,
    user_id: UUID | None = None,
    session_id: UUID | None = None,
    excluding: UUID | None = None,
) -> int:
    """Revoke the sessions that match all arguments; return how many."""
    statement = update(Session).where(Session.revoked_at.is_(None)).values(revoked_at=now)
    if user_id is not None:
        statement = statement.where(Session.user_id == user_id)
    if session_id is not None:
        statement = statement.where(Session.id == session_id)
    if excluding is not None:
        statement = statement.where(Session.id != excluding)
    return len((await session.execute(statement.returning(Session.id))).all())


async def revoke_tokens(
    session: AsyncSession, now: datetime, *, user_id: UUID, token_id: UUID | None = None
) -> int:
    """Revoke one token of the user, or all; return how many."""
    statement = update(ApiToken).where(ApiToken.user_id == user_id, ApiToken.revoked_at.is_(None))
    if token_id is not None:
        statement = statement.where(ApiToken.id == token_id)
    return len((await session.execute(statement.values(revoked_at=now).returning(ApiToken.id))).all())


async def delete_ended_sessions(session: AsyncSession, user_id: UUID, now: datetime) -> None:
    ended = or_(Session.revoked_at.is_not(None), Session.expires_at <= now)
    await session.execute(delete(Session).where(Session.user_id == user_id, ended))
