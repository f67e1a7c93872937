"""A simulated user: chooses at random what to do with their workspaces, whatever breaks."""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from random import Random

from codehub.domain.states import DesiredState, Operation, Phase
from gameday.checks.findings import Findings
from gameday.people.client import API, NoResponse, Response, UserClient
from gameday.people.files import Files
from gameday.people.journal import Journal
from gameday.people.workspaces import View, Workspaces
from gameday.stage.setup import User

MOST_WORKSPACES = 4
PAUSE_SECONDS = (0.05, 0.6)
# In rounds; longer than any TTL of the game.
NEGLECT_ROUNDS = (40, 140)
# What a user does with a workspace, by its phase, with weights.
HABITS: dict[Phase, dict[str, int]] = {
    Phase.RUNNING: {"work": 78, "STANDBY": 8, "ARCHIVED": 6, "neglect": 4, "delete": 4},
    Phase.STANDBY: {"RUNNING": 42, "work": 20, "ARCHIVED": 26, "neglect": 8, "delete": 4},
    Phase.ARCHIVED: {"RUNNING": 70, "STANDBY": 22, "neglect": 4, "delete": 4},
    Phase.PENDING: {"RUNNING": 60, "STANDBY": 20, "ARCHIVED": 20},
    Phase.ERROR: {"recover": 80, "neglect": 20},
    # Only for a deletion that has failed and waits for a person.
    Phase.DELETING: {"recover": 60, "undelete": 25, "purge": 15},
}
PURGE_SHARE = 0.3
SIGN_IN_SHARE = 0.02
UNDELETE_SHARE = 0.1
CREATE_SHARE = 0.3
# Users mostly leave a busy workspace alone, but the API must refuse conflicting requests correctly.
INTERFERE_SHARE = 0.15


@dataclass
class Person:
    """One user with their own random choices."""

    user: User
    client: UserClient
    workspaces: Workspaces
    files: Files
    tally: Counter[str]
    random: Random
    _neglected: Counter[str] = field(default_factory=Counter)

    async def run(self, until: asyncio.Event) -> None:
        async with self.client:
            while not until.is_set():
                await self._play_round()
                await self._pause(until)

    async def _play_round(self) -> None:
        if self.random.random() < SIGN_IN_SHARE:
            await self._sign_in_and_out()
        if self.random.random() < UNDELETE_SHARE:
            await self._undelete_one()
        views = await self.workspaces.list()
        if views is None:
            return
        if len(views) < MOST_WORKSPACES and self.random.random() < CREATE_SHARE:
            await self.workspaces.create()
        if usable := [view for view in views.values() if not self._is_neglected(view["id"])]:
            await self._use(self.random.choice(usable))

    def _is_neglected(self, workspace_id: str) -> bool:
        self._neglected[workspace_id] = max(0, self._neglected[workspace_id] - 1)
        return self._neglected[workspace_id] > 0

    async def _use(self, view: View) -> None:
        is_busy = view["operation"] != Operation.NONE
        if is_busy and self.random.random() > INTERFERE_SHARE:
            return
        phase = Phase(view["phase"])
        habits = HABITS.get(phase)
        if habits is None or (phase is Phase.DELETING and not view["needs_person"]):
            return
        await self._act(view["id"], self.random.choices(tuple(habits), weights=tuple(habits.values()))[0])

    async def _act(self, workspace_id: str, habit: str) -> None:
        if habit == "work":
            await self.files.work(workspace_id)
        elif habit == "neglect":
            self._neglected[workspace_id] = self.random.randint(*NEGLECT_ROUNDS)
        elif habit == "delete":
            await self.workspaces.delete(workspace_id, purge=self.random.random() < PURGE_SHARE)
        elif habit == "purge":
            await self.workspaces.delete(workspace_id, purge=True)
        elif habit == "undelete":
            await self.workspaces.undelete(workspace_id)
        elif habit == "recover":
            await self.workspaces.recover(workspace_id)
        else:
            await self.workspaces.set_desired_state(workspace_id, DesiredState(habit))

    async def _undelete_one(self) -> None:
        if deleted := await self.workspaces.list(deleted=True):
            await self.workspaces.undelete(self.random.choice(sorted(deleted)))

    async def _sign_in_and_out(self) -> None:
        """Sign in with the password, read the session, and sign out; stop at the first failure."""
        with suppress(NoResponse):
            form = {"username": self.user.name, "password": self.user.password}
            signed_in = await self.client.send("POST", f"{API}/login", form=form, with_token=False)
            if not signed_in.is_success:
                return
            self.tally["sessions: signed in"] += 1
            cookie = {"Cookie": _cookie_header(signed_in)}
            await self.client.send("GET", f"{API}/session", headers=cookie, with_token=False)
            headers = {**cookie, "X-CSRF-Token": str(signed_in.document["csrf_token"])}
            signed_out = await self.client.send("POST", f"{API}/logout", headers=headers, with_token=False)
            if signed_out.is_success:
                self.tally["sessions: signed out"] += 1

    async def _pause(self, until: asyncio.Event) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), self.random.uniform(*PAUSE_SECONDS))


def _cookie_header(response: Response) -> str:
    cookies = SimpleCookie(response.headers.get("Set-Cookie", ""))
    return "; ".join(f"{cookie.key}={cookie.value}" for cookie in cookies.values())


def make_person(
    url: str, user: User, seed: str, *, journal: Journal, findings: Findings, tally: Counter[str]
) -> Person:
    """Create a user whose choices depend only on the seed and the name."""
    random = Random(f"{seed}:people:{user.name}")  # noqa: S311 (no secret)
    client = UserClient(url, user.token, tally)
    return Person(
        user=user,
        client=client,
        workspaces=Workspaces(client, journal, tally, random, user.name),
        files=Files(client, journal, findings, tally, random),
        tally=tally,
        random=random,
    )
