"""The root directory as the store of all homes."""

import asyncio
import socket
from pathlib import Path

from codehub.adapters.local.root import LocalRoot, translated


class LocalHomeStore:
    """The identity is in the root's sentinel file, so it goes wherever the homes go."""

    def __init__(self, root: Path) -> None:
        self._root = LocalRoot.at(root)

    @property
    def location(self) -> str:
        return f"the directory {self._root.path} on {socket.gethostname()}"

    async def read_identity(self) -> str | None:
        with translated():
            return await asyncio.to_thread(self._root.read_identity)

    async def create_identity(self) -> str:
        with translated():
            return await asyncio.to_thread(self._root.prepare)
