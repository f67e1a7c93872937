"""Workflows, as the rest of CodeHub sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation


class Convergence(Protocol):
    """Wakes the workflow of a workspace."""

    async def wake(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        """Start or signal the workflow. Never raise for an outage: the next sweep heals a lost wake."""

    async def resume(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        """Start the workflow unless it runs. Never raise for an outage."""


@dataclass(frozen=True)
class SweepState:
    """The state of one schedule."""

    schedule_id: str
    paused: bool
    running: bool
    last_started_at: datetime | None
    next_at: datetime | None


class StepResult(StrEnum):
    """How a step ended."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True)
class StepRecord:
    """One step of an attempt of an operation.

    A step whose worker was lost runs again: `started_at` is of the last run, `error` of the last failed run.
    """

    name: str
    operation_attempt: int
    result: StepResult
    scheduled_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 1
    error: str | None = None


class Histories(Protocol):
    """The steps of operations, kept for some days."""

    async def read_steps(
        self, workspace_id: WorkspaceId, operation: Operation, claimed_at: datetime, ended_at: datetime | None
    ) -> Sequence[StepRecord]:
        """Return the steps of all attempts of the operation that was claimed at this time, in order.

        Return nothing if they are no longer kept. Raise Transient if the store does not respond.
        """


class Sweeps(Protocol):
    """The schedules of the sweeps."""

    async def read(self) -> Sequence[SweepState]:
        """Return the existing schedules. Raise Transient if Temporal does not respond."""
