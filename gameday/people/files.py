"""A user's work on files through the proxy: write, overwrite, delete and read back."""

import hashlib
from collections import Counter
from dataclasses import dataclass
from random import Random
from urllib.parse import quote

from gameday.checks.findings import Findings, Invariant
from gameday.people.client import NoResponse, Response, UserClient
from gameday.people.journal import Change, Journal

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
# Few, and one per home, because all homes share a small disk.
BIG_SHARE = 0.06
SMALLEST_BIG_BYTES = 1 << 20
BIG_DOUBLINGS = 4.3
SMALLEST_BYTES = 16
MOST_SMALL_BYTES = 6000

WAKE = {"X-CodeHub-Wake": "true"}
STEPS = {"write": 68, "read": 24, "delete": 8}
MOST_STEPS = 6
WAKE_SHARE = 0.5
NOT_FOUND, PRECONDITION_FAILED, INSUFFICIENT_STORAGE = 404, 412, 507


def pick_name(random: Random) -> str:
    return BIG_NAME if random.random() < BIG_SHARE else random.choice(NAMES)


def make_content(random: Random, name: str) -> bytes:
    """Return unique content, so that it identifies the request that wrote it."""
    if name == BIG_NAME:
        size = int(SMALLEST_BIG_BYTES * 2 ** random.uniform(0, BIG_DOUBLINGS))
    else:
        size = SMALLEST_BYTES + random.randint(0, MOST_SMALL_BYTES)
    return random.randbytes(size)


@dataclass(frozen=True)
class Files:
    """One user's file requests; the journal records each change before it is sent."""

    client: UserClient
    journal: Journal
    findings: Findings
    tally: Counter[str]
    random: Random

    async def work(self, workspace_id: str) -> None:
        """Compare all files with the journal, then do a few random steps."""
        await self.compare_all(workspace_id)
        for _ in range(self.random.randint(1, MOST_STEPS)):
            await self._random_step(workspace_id)

    async def write(self, workspace_id: str, name: str, *, wake: bool = False) -> None:
        if not await self._ensure_certain(workspace_id, name):
            return
        content = make_content(self.random, name)
        before = self.journal.known(workspace_id).get(name)
        change = self.journal.begin(workspace_id, name, before, hashlib.sha256(content).hexdigest())
        await self._send("PUT", change, content, WAKE if wake else {})

    async def delete(self, workspace_id: str, name: str) -> None:
        if not await self._ensure_certain(workspace_id, name):
            return
        before = self.journal.known(workspace_id).get(name)
        if before is not None:
            await self._send("DELETE", self.journal.begin(workspace_id, name, before, None), None, {})

    async def read(self, workspace_id: str, name: str) -> bool:
        """Read a file and compare it with the journal; return whether the IDE responded."""
        response = await self._get(_file_path(workspace_id, name))
        if response is None or not (response.is_success or response.status == NOT_FOUND):
            return False
        content = hashlib.sha256(response.body).hexdigest() if response.is_success else None
        self.tally["files: read"] += 1
        self._record(workspace_id, self.journal.observe(workspace_id, name, content))
        return True

    async def compare_all(self, workspace_id: str) -> None:
        """Compare all files with the journal."""
        response = await self._get(f"/w/{workspace_id}/tree")
        if response is not None and response.is_success:
            tree = {str(name): str(digest) for name, digest in response.document.items()}
            self.tally["files: compared all"] += 1
            self._record(workspace_id, self.journal.observe_all(workspace_id, tree), max(1, len(tree)))

    async def _random_step(self, workspace_id: str) -> None:
        known = sorted(self.journal.known(workspace_id))
        step = self.random.choices(tuple(STEPS), weights=tuple(STEPS.values()))[0]
        if step == "write" or not known:
            await self.write(workspace_id, pick_name(self.random), wake=self.random.random() < WAKE_SHARE)
        elif step == "read":
            await self.read(workspace_id, self.random.choice(known))
        else:
            await self.delete(workspace_id, self.random.choice(known))

    async def _ensure_certain(self, workspace_id: str, name: str) -> bool:
        """Make sure that the current content is known: a change names what it replaces."""
        return self.journal.is_certain(workspace_id, name) or await self.read(workspace_id, name)

    async def _send(self, method: str, change: Change, body: bytes | None, headers: dict[str, str]) -> None:
        condition = {"If-None-Match": "*"} if change.before is None else {"If-Match": change.before}
        path = _file_path(change.workspace_id, change.name)
        try:
            response = await self.client.send(method, path, headers={**headers, **condition}, body=body)
        except NoResponse as lost:
            if lost.sent:
                self._leave_open(method, change)
            else:
                self.journal.refuse(change)
        else:
            self._handle(method, change, response)

    def _handle(self, method: str, change: Change, response: Response) -> None:
        if response.is_from_ide and response.is_success:
            self.tally[f"files: {method} acknowledged"] += 1
            self._record(change.workspace_id, self.journal.acknowledge(change))
        elif response.is_from_ide and response.status == PRECONDITION_FAILED:
            self.tally[f"files: {method} found other content"] += 1
            self._record(change.workspace_id, self.journal.refuse_other_content(change))
        elif response.is_from_ide and response.status == INSUFFICIENT_STORAGE:
            self.tally[f"files: {method} found no space"] += 1
            self.journal.refuse(change)
        elif response.never_reached_ide:
            self.tally[f"files: {method} found no IDE"] += 1
            self.journal.refuse(change)
        else:
            self._leave_open(method, change)

    def _leave_open(self, method: str, change: Change) -> None:
        self.tally[f"files: {method} uncertain"] += 1
        self.journal.leave_open(change)

    async def _get(self, path: str) -> Response | None:
        """Return the IDE's response, or None if there is none."""
        try:
            response = await self.client.send("GET", path)
        except NoResponse:
            return None
        return response if response.is_from_ide else None

    def _record(self, workspace_id: str, problems: list[str], checks: int = 1) -> None:
        self.findings.record(Invariant.READ_BACK, problems, workspace_id, checks)


def _file_path(workspace_id: str, name: str) -> str:
    return f"/w/{workspace_id}/files/{quote(name)}"
