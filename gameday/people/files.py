"""What people call their files, and what they write into them."""

import hashlib
from dataclasses import dataclass
from random import Random
from urllib.parse import quote

from gameday.checks.findings import Findings, Invariant
from gameday.people.journal import Change, Journal
from gameday.people.requests import NoAnswer, Reply, Requests
from gameday.people.tally import Tally

NAMES = (
    "notes.txt",
    "src/main.py",
    "src/deep/er/still/module.py",
    "a name with spaces.md",
    "größe-文件.txt",
    ".hidden",
    "-n",
    "100%.log",
    "quote'\"$(x).sh",
)
BIG_NAME = "big/data.bin"
# Few and only one for each home, because all homes share a small disk.
BIG_SHARE = 0.06
SMALLEST_BIG_BYTES = 1 << 20
BIG_DOUBLINGS = 4.3
MOST_SMALL_BYTES = 6000
MARK_BYTES = 16


def pick_name(random: Random) -> str:
    return BIG_NAME if random.random() < BIG_SHARE else random.choice(NAMES)


def make_content(random: Random, name: str) -> bytes:
    """No two are alike: what is found later tells which request wrote it."""
    if name == BIG_NAME:
        size = int(SMALLEST_BIG_BYTES * 2 ** random.uniform(0, BIG_DOUBLINGS))
    else:
        size = MARK_BYTES + random.randint(0, MOST_SMALL_BYTES)
    return random.randbytes(size)


WAKE = {"X-CodeHub-Wake": "true"}
STEPS = {"write": 68, "read": 24, "delete": 8}
MOST_STEPS = 6
WAKE_SHARE = 0.5
NOT_FOUND, OTHER_CONTENT, DISK_FULL = 404, 412, 507


@dataclass(frozen=True)
class Files:
    """One person's work on files, journalled before it is sent."""

    requests: Requests
    journal: Journal
    findings: Findings
    tally: Tally
    random: Random

    async def work(self, workspace_id: str) -> None:
        """Look whether all is as it was left, then do a few things."""
        await self.look(workspace_id)
        for _ in range(self.random.randint(1, MOST_STEPS)):
            await self._do_something(workspace_id)

    async def write(self, workspace_id: str, name: str, *, wake: bool = False) -> None:
        if not await self._make_sure(workspace_id, name):
            return
        content = make_content(self.random, name)
        before = self.journal.known(workspace_id).get(name)
        change = self.journal.begin(workspace_id, name, before, hashlib.sha256(content).hexdigest())
        await self._send("PUT", change, content, WAKE if wake else {})

    async def delete(self, workspace_id: str, name: str) -> None:
        if not await self._make_sure(workspace_id, name):
            return
        before = self.journal.known(workspace_id).get(name)
        if before is not None:
            await self._send("DELETE", self.journal.begin(workspace_id, name, before, None), None, {})

    async def read(self, workspace_id: str, name: str) -> bool:
        """Read a file back; True if the IDE has answered."""
        reply = await self._get(_path_of(workspace_id, name))
        if reply is None or not (reply.is_good or reply.status == NOT_FOUND):
            return False
        content = hashlib.sha256(reply.body).hexdigest() if reply.is_good else None
        self.tally.add("files: read")
        self._judge(workspace_id, self.journal.see(workspace_id, name, content))
        return True

    async def look(self, workspace_id: str) -> None:
        """Compare all files at once."""
        reply = await self._get(f"/w/{workspace_id}/tree")
        if reply is not None and reply.is_good:
            tree = {str(name): str(digest) for name, digest in reply.document.items()}
            self.tally.add("files: looked at all")
            self._judge(workspace_id, self.journal.see_all(workspace_id, tree), max(1, len(tree)))

    async def _do_something(self, workspace_id: str) -> None:
        known = sorted(self.journal.known(workspace_id))
        does = self.random.choices(tuple(STEPS), weights=tuple(STEPS.values()))[0]
        if does == "write" or not known:
            await self.write(workspace_id, pick_name(self.random), wake=self.random.random() < WAKE_SHARE)
        elif does == "read":
            await self.read(workspace_id, self.random.choice(known))
        else:
            await self.delete(workspace_id, self.random.choice(known))

    async def _make_sure(self, workspace_id: str, name: str) -> bool:
        """A change names what it replaces, so that has to be known."""
        return self.journal.is_sure(workspace_id, name) or await self.read(workspace_id, name)

    async def _send(self, method: str, change: Change, body: bytes | None, headers: dict[str, str]) -> None:
        condition = {"If-None-Match": "*"} if change.before is None else {"If-Match": change.before}
        path = _path_of(change.workspace_id, change.name)
        try:
            reply = await self.requests.ask(method, path, headers={**headers, **condition}, body=body)
        except NoAnswer as lost:
            if lost.sent:
                self._leave_open(method, change)
            else:
                self.journal.refuse(change)
        else:
            self._take_in(method, change, reply)

    def _take_in(self, method: str, change: Change, reply: Reply) -> None:
        if reply.is_from_ide and reply.is_good:
            self.tally.add(f"files: {method} acknowledged")
            self._judge(change.workspace_id, self.journal.acknowledge(change))
        elif reply.is_from_ide and reply.status == OTHER_CONTENT:
            self.tally.add(f"files: {method} found another content")
            self._judge(change.workspace_id, self.journal.refuse_other_content(change))
        elif reply.is_from_ide and reply.status == DISK_FULL:
            self.tally.add(f"files: {method} found no space")
            self.journal.refuse(change)
        elif reply.never_reached_ide:
            self.tally.add(f"files: {method} found no IDE")
            self.journal.refuse(change)
        else:
            self._leave_open(method, change)

    def _leave_open(self, method: str, change: Change) -> None:
        self.tally.add(f"files: {method} uncertain")
        self.journal.give_up(change)

    async def _get(self, path: str) -> Reply | None:
        """What the IDE says; None if it did not."""
        try:
            reply = await self.requests.ask("GET", path)
        except NoAnswer:
            return None
        return reply if reply.is_from_ide else None

    def _judge(self, workspace_id: str, problems: list[str], checks: int = 1) -> None:
        self.findings.note(Invariant.READ_BACK, problems, workspace_id, checks)


def _path_of(workspace_id: str, name: str) -> str:
    return f"/w/{workspace_id}/files/{quote(name)}"
