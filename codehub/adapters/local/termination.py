"""End an instance: ask, wait a little, then leave it no choice."""

import asyncio
import signal

from codehub.adapters.local.processes import Member, find_members, outermost, send
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

POLL_SECONDS = 0.03


async def end(marker: str, *, grace: float, patience: float) -> None:
    """Return once no process of the instance is left."""
    members = await asyncio.to_thread(find_members, marker)
    if members:
        # The sandbox's outer process would end at once and leave its inside running: ask only those inside.
        asked = {member for member in members if member.sandboxed} or members
        await asyncio.to_thread(send, marker, signal.SIGTERM, asked)
        members = await _outwait(marker, members, grace)
    deadline = _now() + patience
    while members:
        if _now() > deadline:
            pids = ", ".join(str(member.pid) for member in members)
            raise Transient(ErrorReason.ACTION_FAILED, f"The instance does not end (processes {pids}).")
        await asyncio.to_thread(send, marker, signal.SIGKILL, members)
        await asyncio.sleep(POLL_SECONDS)
        members = await asyncio.to_thread(find_members, marker)


async def _outwait(marker: str, members: set[Member], grace: float) -> set[Member]:
    """Who is left when the grace is over or the IDE has ended; its children have no say in that."""
    # If somebody has killed the outer process, those inside still have their grace.
    ide = outermost(members) or members
    deadline = _now() + grace
    while members & ide and _now() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        members = await asyncio.to_thread(find_members, marker)
    return members


def _now() -> float:
    return asyncio.get_running_loop().time()
