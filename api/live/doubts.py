"""Sessions and tokens of open streams that may have been revoked, until somebody has looked."""

import asyncio
from collections.abc import Set


class SuspectCredentials:
    """Those that are doubted while one look is made wait for the next one."""

    def __init__(self) -> None:
        self._credentials: set[str] = set()
        self._filled = asyncio.Event()

    def add(self, credentials: Set[str]) -> None:
        self._credentials |= credentials
        if self._credentials:
            self._filled.set()

    async def take(self) -> set[str]:
        """All of them, once there are any."""
        await self._filled.wait()
        self._filled.clear()
        taken, self._credentials = self._credentials, set()
        return taken
