"""Shares and unshares ports of workspaces."""

from datetime import datetime, timedelta

from codehub.db.port_shares import load_shares, save_shares
from codehub.db.session import Database
from codehub.db.workspaces import lock_visible_workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import (
    Audience,
    PortShare,
    ShareRefused,
    SharingRules,
    add_share,
    remove_share,
)
from codehub.services.audit import Action, Actor, record
from codehub.services.errors import PortShareRefused, WorkspaceNotFound


async def share_port(
    database: Database,
    workspace_id: WorkspaceId,
    port: int,
    audience: Audience,
    lifetime: timedelta | None,
    *,
    rules: SharingRules,
    now: datetime,
    by: Actor,
) -> PortShare:
    """Share a port, or change its audience and expiry; return the share. Raise PortShareRefused."""
    new = PortShare(audience, now, None if lifetime is None else now + lifetime)
    async with database.transaction() as session:
        workspace = await lock_visible_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        shares = await load_shares(session, workspace_id)
        try:
            rules.check(audience, lifetime)
            shares = add_share(shares, port, new)
        except ShareRefused as error:
            raise PortShareRefused(str(error)) from error
        await save_shares(session, workspace_id, shares, now)
        detail = {
            "port": port,
            "audience": audience,
            "expires_at": new.expires_at.isoformat() if new.expires_at else None,
        }
        await record(
            session,
            Action.PORT_SHARE,
            now,
            by=by,
            target=workspace.metadata.name,
            target_id=workspace_id,
            detail=detail,
        )
    return new


async def unshare_port(
    database: Database, workspace_id: WorkspaceId, port: int, *, now: datetime, by: Actor
) -> None:
    """Stop sharing a port; do nothing if it is not shared."""
    async with database.transaction() as session:
        workspace = await lock_visible_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        shares = await load_shares(session, workspace_id)
        if port not in shares:
            return
        await save_shares(session, workspace_id, remove_share(shares, port), now)
        await record(
            session,
            Action.PORT_UNSHARE,
            now,
            by=by,
            target=workspace.metadata.name,
            target_id=workspace_id,
            detail={"port": port, "audience": shares[port].audience},
        )
