"""The systems that are compared."""

from collections.abc import Mapping
from typing import Protocol

from codehub.domain.states import Operation

BARE, KUBECTL, ADAPTER, OURS, HUB = "bare", "kubectl", "our adapter alone", "CodeHub", "JupyterHub"
NAMES = (BARE, KUBECTL, ADAPTER, OURS, HUB)
START_SECONDS = 120


class Failed(Exception):
    """An operation of a contestant failed; the message says why."""


class Contestant(Protocol):
    """A system that starts and stops workspaces, identified by an image and a number."""

    async def prepare(self, reference: str, number: int) -> None:
        """Create the home before the first start."""

    async def start(self, reference: str, number: int) -> None:
        """Return when the workspace accepts traffic; raise Failed if it does not start."""

    async def stop(self, reference: str, number: int) -> None:
        """Return when the instance is gone; raise Failed if it remains."""

    async def step_seconds(self, reference: str, number: int, operation: Operation) -> Mapping[str, float]:
        """Return the duration of the steps of the last operation, as far as known."""
