"""Network policies of workspaces: the owner's choice and the administrator's limit."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.egress import LogEntry, StoredPolicies, list_log, load_policies, set_choice, set_limit
from codehub.db.session import Database
from codehub.db.workspaces import lock_visible_workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressMode, EgressPolicy, EgressRules, InvalidName, parse_policy, rules_for
from codehub.services.audit import Action, Actor, record
from codehub.services.errors import InvalidNetworkPolicy, WorkspaceNotFound

LOG_SHOWN = timedelta(days=7)
LOG_ENTRIES = 500
Store = Callable[[AsyncSession, WorkspaceId, EgressPolicy | None, datetime], Awaitable[None]]


@dataclass(frozen=True)
class NetworkRules:
    """The policy of the installation, and whether owners may loosen it."""

    installation: EgressPolicy
    owners_may_loosen: bool

    def rules_of(self, stored: StoredPolicies) -> EgressRules:
        """Return the rules that apply to a workspace."""
        return rules_for(
            self.installation, stored.limit, stored.choice, owners_may_loosen=self.owners_may_loosen
        )


async def read_policies(database: Database, workspace_id: WorkspaceId) -> StoredPolicies:
    """Return the policies of a workspace. Raise WorkspaceNotFound."""
    async with database.transaction() as session:
        found = await load_policies(session, [workspace_id])
    if workspace_id not in found:
        raise WorkspaceNotFound(workspace_id)
    return found[workspace_id]


async def read_log(database: Database, workspace_id: WorkspaceId, now: datetime) -> Sequence[LogEntry]:
    """Return the names that the workspace connected to or was refused, newest hour first."""
    async with database.transaction() as session:
        return await list_log(session, workspace_id, now - LOG_SHOWN, LOG_ENTRIES)


async def choose_policy(
    database: Database,
    workspace_id: WorkspaceId,
    mode: EgressMode | None,
    names: Sequence[str],
    *,
    now: datetime,
    by: Actor,
) -> None:
    """Store the owner's choice; without a mode, the workspace follows the installation again."""
    await _store(
        database, workspace_id, _parse(mode, names), set_choice, Action.NETWORK_POLICY, now=now, by=by
    )


async def limit_policy(
    database: Database,
    workspace_id: WorkspaceId,
    mode: EgressMode | None,
    names: Sequence[str],
    *,
    now: datetime,
    by: Actor,
) -> None:
    """Store an administrator's limit, which replaces the installation's policy for this workspace."""
    await _store(database, workspace_id, _parse(mode, names), set_limit, Action.NETWORK_LIMIT, now=now, by=by)


async def _store(
    database: Database,
    workspace_id: WorkspaceId,
    policy: EgressPolicy | None,
    store: Store,
    action: Action,
    *,
    now: datetime,
    by: Actor,
) -> None:
    async with database.transaction() as session:
        workspace = await lock_visible_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        await store(session, workspace_id, policy, now)
        detail = {"mode": policy.mode if policy else "default", "names": len(policy.names) if policy else 0}
        await record(
            session,
            action,
            now,
            by=by,
            target=workspace.metadata.name,
            target_id=workspace_id,
            detail=detail,
        )


def _parse(mode: EgressMode | None, names: Sequence[str]) -> EgressPolicy | None:
    if mode is None and not names:
        return None
    try:
        return parse_policy(mode or EgressMode.OPEN, names)
    except InvalidName as error:
        raise InvalidNetworkPolicy(str(error)) from error
