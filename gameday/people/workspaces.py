"""A person's workspaces: made, moved between states, recovered, deleted and taken back, as the API allows."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from codehub.domain.states import DesiredState
from gameday.people.journal import Journal
from gameday.people.requests import API, NoAnswer, Reply, Requests
from gameday.people.tally import Tally

WORKSPACES = f"{API}/workspaces"
# More than anybody makes, so that there is only one page.
PAGE_SIZE = 200
# After any other it may have been carried out all the same.
ANSWERS = range(200, 500)

View = dict[str, Any]


@dataclass
class Creation:
    """What was asked for: the same words until there is an answer, so that it is made once."""

    key: str
    form: dict[str, str]


@dataclass
class Workspaces:
    """What one person asks of the API. An outage or a refusal is part of life: one asks again later."""

    requests: Requests
    journal: Journal
    tally: Tally
    random: Random
    name: str
    _creation: Creation | None = None
    _created: int = field(default=0)

    async def list(self, *, deleted: bool = False) -> dict[str, View] | None:
        """By id; None if there is no telling now."""
        reply = await self._ask("GET", f"{WORKSPACES}?limit={PAGE_SIZE}&deleted={str(deleted).lower()}")
        if reply is None or not reply.is_good:
            return None
        return {view["id"]: view for view in reply.document["items"]}

    async def create(self) -> None:
        if self._creation is None:
            self._created += 1
            desired = self.random.choices(tuple(DesiredState)[:3], weights=(1, 2, 7))[0]
            form = {"name": f"{self.name}-{self._created}", "desired_state": desired.value}
            self._creation = Creation(f"{self.name}-{self.random.getrandbits(64):x}", form)
        headers = {"Idempotency-Key": self._creation.key}
        reply = await self._ask("POST", WORKSPACES, self._creation.form, headers)
        if reply is None or reply.status not in ANSWERS:
            self.tally.add("workspaces: creation uncertain")
            return
        # If it was over the limit, the next one may ask for less.
        self._creation = None
        if reply.is_good:
            self.tally.add("workspaces: created")

    async def ask_for(self, workspace_id: str, desired: DesiredState) -> None:
        form = {"desired_state": desired.value}
        reply = await self._ask("PATCH", f"{WORKSPACES}/{workspace_id}", form)
        if reply is not None and reply.is_good:
            self.tally.add(f"workspaces: asked for {desired.value}")

    async def recover(self, workspace_id: str) -> None:
        """Look again and go on; nobody here ever gives up files."""
        reply = await self._ask("POST", f"{WORKSPACES}/{workspace_id}/recover", {"choice": "retry"})
        if reply is not None and reply.is_good:
            self.tally.add("workspaces: recovered")

    async def delete(self, workspace_id: str, *, purge: bool) -> None:
        fate = self.journal.fate(workspace_id)
        number = fate.ask_deletion()
        reply = await self._ask("DELETE", f"{WORKSPACES}/{workspace_id}?purge={str(purge).lower()}")
        if reply is None or reply.status not in ANSWERS:
            self.tally.add("workspaces: deletion uncertain")
        elif reply.is_good:
            purged = bool(reply.document["purge"])
            fate.acknowledge_deletion(number, purged=purged)
            self.tally.add("workspaces: purged" if purged else "workspaces: deleted")
        else:
            fate.refuse_deletion(number)

    async def undelete(self, workspace_id: str) -> None:
        fate = self.journal.fate(workspace_id)
        number = fate.ask_return()
        reply = await self._ask("POST", f"{WORKSPACES}/{workspace_id}/undelete")
        if reply is None or reply.status not in ANSWERS:
            self.tally.add("workspaces: undeletion uncertain")
        elif reply.is_good:
            fate.acknowledge_return(number)
            self.tally.add("workspaces: undeleted")
        else:
            fate.refuse_return(number)

    async def _ask(
        self,
        method: str,
        path: str,
        form: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply | None:
        try:
            return await self.requests.ask(method, path, form=form, headers=headers)
        except NoAnswer:
            return None
