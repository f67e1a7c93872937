"""A user's requests about workspaces: create, start, stop, archive, recover, delete and undelete."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from codehub.domain.states import DesiredState, Phase
from codehub.words import PHASES
from gameday.people.client import API, NoResponse, Response, UserClient
from gameday.people.journal import Journal

WORKSPACES = f"{API}/workspaces"
# More than any user creates, so one page is enough.
PAGE_SIZE = 200
# With any other status, the request may have been carried out nevertheless.
DEFINITE_STATUSES = range(200, 500)

View = dict[str, Any]


@dataclass
class Creation:
    """A creation that is repeated unchanged until it gets a response, so that it happens once."""

    key: str
    form: dict[str, str]


@dataclass
class Workspaces:
    """One user's requests to the API; after an outage or a refusal they try again later."""

    client: UserClient
    journal: Journal
    tally: Counter[str]
    random: Random
    name: str
    _creation: Creation | None = None
    _created: int = field(default=0)

    async def list(self, *, deleted: bool = False) -> dict[str, View] | None:
        """Return the workspaces by id, or None during an outage."""
        response = await self._send("GET", f"{WORKSPACES}?limit={PAGE_SIZE}&deleted={str(deleted).lower()}")
        if response is None or not response.is_success:
            return None
        return {view["id"]: view for view in response.document["items"]}

    async def create(self) -> None:
        if self._creation is None:
            self._created += 1
            desired = self.random.choices(tuple(DesiredState)[:3], weights=(1, 2, 7))[0]
            form = {"name": f"{self.name}-{self._created}", "desired_state": desired.value}
            self._creation = Creation(f"{self.name}-{self.random.getrandbits(64):x}", form)
        headers = {"Idempotency-Key": self._creation.key}
        response = await self._send("POST", WORKSPACES, self._creation.form, headers)
        if response is None or response.status not in DEFINITE_STATUSES:
            self.tally["workspaces: creation uncertain"] += 1
            return
        # Also after a refusal because of a limit: the next creation may ask for less.
        self._creation = None
        if response.is_success:
            self.tally["workspaces: created"] += 1

    async def set_desired_state(self, workspace_id: str, desired: DesiredState) -> None:
        form = {"desired_state": desired.value}
        response = await self._send("PATCH", f"{WORKSPACES}/{workspace_id}", form)
        if response is not None and response.is_success:
            self.tally[f"workspaces: requested {PHASES[Phase(desired.value)].label.lower()}"] += 1

    async def recover(self, workspace_id: str) -> None:
        """Retry after an error; users never give up files."""
        response = await self._send("POST", f"{WORKSPACES}/{workspace_id}/recover", {"choice": "retry"})
        if response is not None and response.is_success:
            self.tally["workspaces: recovered"] += 1

    async def delete(self, workspace_id: str, *, purge: bool) -> None:
        existence = self.journal.existence(workspace_id)
        request = existence.begin_deletion()
        response = await self._send("DELETE", f"{WORKSPACES}/{workspace_id}?purge={str(purge).lower()}")
        if response is None or response.status not in DEFINITE_STATUSES:
            self.tally["workspaces: deletion uncertain"] += 1
        elif response.is_success:
            purged = bool(response.document["purge"])
            existence.acknowledge_deletion(request, purged=purged)
            self.tally["workspaces: purged" if purged else "workspaces: deleted"] += 1
        else:
            existence.refuse_deletion(request)

    async def undelete(self, workspace_id: str) -> None:
        existence = self.journal.existence(workspace_id)
        request = existence.begin_undelete()
        response = await self._send("POST", f"{WORKSPACES}/{workspace_id}/undelete")
        if response is None or response.status not in DEFINITE_STATUSES:
            self.tally["workspaces: undelete uncertain"] += 1
        elif response.is_success:
            existence.acknowledge_undelete(request)
            self.tally["workspaces: undeleted"] += 1
        else:
            existence.refuse_undelete(request)

    async def _send(
        self,
        method: str,
        path: str,
        form: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Response | None:
        try:
            return await self.client.send(method, path, form=form, headers=headers)
        except NoResponse:
            return None
