"""What people were told live must in the end be what they would find by asking."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any

from gameday.checks.api import Asker
from gameday.checks.findings import Findings, Invariant
from gameday.people.followers import Follower

POLL_SECONDS = 0.5
# A stream that was cut comes back within seconds.
PATIENCE_SECONDS = 60.0
# What an event is sent for; the time of the last use is not among it.
TOLD = ("phase", "operation", "desired_state", "name", "error", "deleted_at", "archive_ttl_seconds")

Workspaces = Mapping[str, Mapping[str, Any]]


async def check_follower(asker: Asker, user_id: str, follower: Follower, findings: Findings) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        true = await asker.list_workspaces(user_id)
        problems = ["The API does not answer."] if true is None else list(compare(follower.state(), true))
        if not problems or time.monotonic() > deadline:
            findings.note(Invariant.FOLLOWERS, problems, checks=1 + len(true or ()))
            return
        await asyncio.sleep(POLL_SECONDS)


def compare(told: Workspaces, true: Workspaces) -> Iterator[str]:
    for workspace_id in sorted(told.keys() - true.keys()):
        yield f"{workspace_id} is still shown as {told[workspace_id]['phase']}, but it is gone."
    for workspace_id in sorted(true.keys() - told.keys()):
        yield f"{workspace_id} is {true[workspace_id]['phase']}, but nobody was told of it."
    for workspace_id in sorted(true.keys() & told.keys()):
        for field in TOLD:
            shown, found = told[workspace_id].get(field), true[workspace_id].get(field)
            if shown != found:
                yield f"{workspace_id} is shown with {field} {shown}, but it is {found}."
