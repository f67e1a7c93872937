"""Removal of old rows, in batches; each statement finds its rows by an index."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeAlias, cast

from sqlalchemy import CursorResult, TextClause, text
from sqlalchemy.ext.asyncio import AsyncSession

# Delete up to `limit` rows older than `before`; return the number deleted.
RemoveOld: TypeAlias = Callable[[AsyncSession, datetime, int], Awaitable[int]]

# `may_forget` of the domain: every known archive was collected, also the one that the row names. A locked row
# may be in the middle of an undelete; the next run tries again.
DELETE_WORKSPACES = """
    DELETE FROM workspaces WHERE id = ANY (ARRAY(
        SELECT id FROM workspaces
        WHERE phase = 'DELETED' AND operation = 'NONE' AND deleted_at < :before
            AND NOT EXISTS (
                SELECT FROM archives WHERE workspace_id = workspaces.id AND archives.deleted_at IS NULL
            )
            AND (archive_key IS NULL OR EXISTS (SELECT FROM archives WHERE key = archive_key))
        ORDER BY deleted_at LIMIT :limit FOR UPDATE SKIP LOCKED
    ))
"""
# The row tells an undelete that the archive is gone, so it stays while a workspace names the archive.
DELETE_ARCHIVES = """
    DELETE FROM archives WHERE key = ANY (ARRAY(
        SELECT key FROM archives
        WHERE deleted_at < :before AND NOT EXISTS (
            SELECT FROM workspaces WHERE id = archives.workspace_id AND archive_key = archives.key
        )
        ORDER BY deleted_at LIMIT :limit
    ))
"""
DELETE_EVENTS = """
    DELETE FROM workspace_events WHERE id = ANY (ARRAY(
        SELECT id FROM workspace_events WHERE at < :before ORDER BY at LIMIT :limit
    ))
"""
# A revoked session would have expired soon after, so `expires_at` finds both.
DELETE_SESSIONS = """
    DELETE FROM sessions WHERE id = ANY (ARRAY(
        SELECT id FROM sessions WHERE expires_at < :before ORDER BY expires_at LIMIT :limit
    ))
"""
DELETE_TOKENS = """
    DELETE FROM api_tokens WHERE id = ANY (ARRAY(
        SELECT id FROM api_tokens WHERE least(expires_at, revoked_at) < :before
        ORDER BY least(expires_at, revoked_at) LIMIT :limit
    ))
"""
# Only this function may remove entries: triggers refuse everything else.
REMOVE_AUDIT_LOG = "SELECT remove_old_audit_log(:before, :limit)"
# By ctid: looking the rows up by their primary key again would read the whole table.
DELETE_USAGE = """
    DELETE FROM workspace_usage WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM workspace_usage WHERE bucket < :before ORDER BY bucket LIMIT :limit
    ))
"""
DELETE_EGRESS_LOG = """
    DELETE FROM egress_log WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM egress_log WHERE hour < :before ORDER BY hour LIMIT :limit
    ))
"""

SELECT_UNCOLLECTED = """
    SELECT coalesce(archives.key, archive_key) AS key FROM workspaces
    LEFT JOIN archives ON workspace_id = workspaces.id AND archives.deleted_at IS NULL
    WHERE phase = 'DELETED' AND workspaces.deleted_at < :before AND (
        archives.key IS NOT NULL
        OR (archive_key IS NOT NULL AND NOT EXISTS (SELECT FROM archives WHERE key = archive_key))
    )
    ORDER BY workspaces.deleted_at LIMIT :limit
"""


def bound(statement: str, before: datetime, limit: int) -> TextClause:
    return text(statement).bindparams(before=before, limit=limit)


async def list_uncollected(session: AsyncSession, deleted_before: datetime, limit: int) -> list[str]:
    """Return the archives, not recorded as removed, of workspaces that were deleted before this time."""
    return list(await session.scalars(bound(SELECT_UNCOLLECTED, deleted_before, limit)))


def _remover(statement: str) -> RemoveOld:
    async def remove(session: AsyncSession, before: datetime, limit: int) -> int:
        done = await session.execute(bound(statement, before, limit))
        return cast("CursorResult[Any]", done).rowcount

    return remove


async def remove_audit_log(session: AsyncSession, before: datetime, limit: int) -> int:
    return int((await session.execute(bound(REMOVE_AUDIT_LOG, before, limit))).scalar_one())


remove_workspaces = _remover(DELETE_WORKSPACES)
remove_archives = _remover(DELETE_ARCHIVES)
remove_events = _remover(DELETE_EVENTS)
remove_sessions = _remover(DELETE_SESSIONS)
remove_tokens = _remover(DELETE_TOKENS)
remove_usage = _remover(DELETE_USAGE)
remove_egress_log = _remover(DELETE_EGRESS_LOG)
