"""Signing in with a password, looking who one is, and signing out again."""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from random import Random

from codehub.domain.states import DesiredState, Operation, Phase
from gameday.checks.findings import Findings
from gameday.people.files import Files
from gameday.people.journal import Journal
from gameday.people.requests import API, NoAnswer, Reply, Requests
from gameday.people.tally import Tally
from gameday.people.workspaces import View, Workspaces
from gameday.stage.setup import User


async def visit(requests: Requests, user: User, tally: Tally) -> None:
    """An outage ends the visit, and the session is left behind."""
    with suppress(NoAnswer):
        form = {"username": user.name, "password": user.password}
        reply = await requests.ask("POST", f"{API}/login", form=form, as_token=False)
        if not reply.is_good:
            return
        tally.add("sessions: signed in")
        cookie = {"Cookie": _cookies_of(reply)}
        await requests.ask("GET", f"{API}/session", headers=cookie, as_token=False)
        proof = {**cookie, "X-CSRF-Token": str(reply.document["csrf_token"])}
        ended = await requests.ask("POST", f"{API}/logout", headers=proof, as_token=False)
        if ended.is_good:
            tally.add("sessions: signed out")


def _cookies_of(reply: Reply) -> str:
    cookies = SimpleCookie(reply.headers.get("Set-Cookie", ""))
    return "; ".join(f"{cookie.key}={cookie.value}" for cookie in cookies.values())


MOST_WORKSPACES = 4
PAUSE_SECONDS = (0.05, 0.6)
# So many rounds without a look at a workspace: longer than any TTL of the game.
NEGLECT_ROUNDS = (40, 140)
# What somebody does with a workspace, by its phase; how often, of a hundred times.
HABITS: dict[Phase, dict[str, int]] = {
    Phase.RUNNING: {"work": 78, "STANDBY": 8, "ARCHIVED": 6, "neglect": 4, "delete": 4},
    Phase.STANDBY: {"RUNNING": 42, "work": 20, "ARCHIVED": 26, "neglect": 8, "delete": 4},
    Phase.ARCHIVED: {"RUNNING": 70, "STANDBY": 22, "neglect": 4, "delete": 4},
    Phase.PENDING: {"RUNNING": 60, "STANDBY": 20, "ARCHIVED": 20},
    Phase.ERROR: {"recover": 80, "neglect": 20},
    # Only a deletion that has failed, which waits for a person.
    Phase.DELETING: {"recover": 60, "undelete": 25, "purge": 15},
}
PURGE_SHARE = 0.3
SIGN_IN_SHARE = 0.02
UNDELETE_SHARE = 0.1
CREATE_SHARE = 0.3
# What is under way is mostly left alone, but asking for something else has to be refused properly.
INTERFERE_SHARE = 0.15


@dataclass
class Person:
    """One user, with habits and chances of their own."""

    user: User
    requests: Requests
    workspaces: Workspaces
    files: Files
    tally: Tally
    random: Random
    _neglected: Counter[str] = field(default_factory=Counter)

    async def live(self, until: asyncio.Event) -> None:
        async with self.requests:
            while not until.is_set():
                await self._do_something()
                await self._pause(until)

    async def _do_something(self) -> None:
        if self.random.random() < SIGN_IN_SHARE:
            await visit(self.requests, self.user, self.tally)
        if self.random.random() < UNDELETE_SHARE:
            await self._think_again()
        views = await self.workspaces.list()
        if views is None:
            return
        if len(views) < MOST_WORKSPACES and self.random.random() < CREATE_SHARE:
            await self.workspaces.create()
        if mine := [view for view in views.values() if not self._is_neglected(view["id"])]:
            await self._use(self.random.choice(mine))

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
            await self.workspaces.ask_for(workspace_id, DesiredState(habit))

    async def _think_again(self) -> None:
        if deleted := await self.workspaces.list(deleted=True):
            await self.workspaces.undelete(self.random.choice(sorted(deleted)))

    async def _pause(self, until: asyncio.Event) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), self.random.uniform(*PAUSE_SECONDS))


def make_person(
    url: str, user: User, seed: str, *, journal: Journal, findings: Findings, tally: Tally
) -> Person:
    """Somebody whose chances come from the seed and their name alone."""
    random = Random(f"{seed}:people:{user.name}")  # noqa: S311 (repeatable, nothing secret)
    requests = Requests(url, user.token, tally)
    return Person(
        user=user,
        requests=requests,
        workspaces=Workspaces(requests, journal, tally, random, user.name),
        files=Files(requests, journal, findings, tally, random),
        tally=tally,
        random=random,
    )
