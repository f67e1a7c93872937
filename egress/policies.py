"""Caches the policies of the workspaces that use the gateway."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field

from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressMode, EgressPolicy, EgressRules
from codehub.services.outages import is_outage

logger = logging.getLogger(__name__)

# Far more than run at once; the oldest are evicted first.
MOST_KNOWN = 10_000
NOTHING = EgressRules((EgressPolicy(EgressMode.NONE),))

# Returns the rules of those workspaces that exist; raises if the database is down.
ReadRules = Callable[[Collection[WorkspaceId]], Awaitable[Mapping[WorkspaceId, EgressRules]]]


class PoliciesUnavailable(Exception):
    """The policy of a workspace is not cached and cannot be read."""


@dataclass
class PolicyCache:
    """Caches the rules of workspaces that connected; during an outage, cached rules stay in force."""

    read: ReadRules
    _rules: dict[WorkspaceId, EgressRules] = field(default_factory=dict)

    def known(self, workspace_id: WorkspaceId) -> EgressRules:
        """Return the cached rules; without any, nothing is permitted."""
        return self._rules.get(workspace_id, NOTHING)

    async def load(self, workspace_id: WorkspaceId) -> EgressRules:
        """Return the rules; read them if they are not cached. Raise PoliciesUnavailable."""
        if workspace_id not in self._rules:
            # A deleted workspace has none, so each of its connections is looked up and refused.
            self._rules.update(await self._read([workspace_id]))
            while len(self._rules) > MOST_KNOWN:
                del self._rules[next(iter(self._rules))]
        return self.known(workspace_id)

    async def refresh(self) -> None:
        """Reload all cached rules; keep them during an outage."""
        wanted = list(self._rules)
        if not wanted:
            return
        try:
            found = await self._read(wanted)
        except PoliciesUnavailable as error:
            logger.warning("cannot read the policies; those in the cache stay in force: %s", error)
            return
        for workspace_id in wanted:
            if workspace_id in found:
                self._rules[workspace_id] = found[workspace_id]
            else:
                self._rules.pop(workspace_id, None)

    async def _read(self, wanted: Collection[WorkspaceId]) -> Mapping[WorkspaceId, EgressRules]:
        try:
            return await self.read(wanted)
        except Exception as error:
            if not is_outage(error):
                raise
            raise PoliciesUnavailable(str(error)) from error
