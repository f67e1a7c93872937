"""The invariants, how often each was checked, and their violations."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Invariant(StrEnum):
    """One promise, as the report words it."""

    LIMITS = "Nobody runs more workspaces than the limits allow"
    ONE_INSTANCE = "A workspace never has two instances"
    ARCHIVE_KEPT = "Needed archives are never removed, others not before their grace period ends"
    READ_BACK = "People read what they wrote, even while things break"
    ECHOES = "WebSockets return what was sent, or close"
    NOT_LOCKED_OUT = "An S3 outage keeps nobody out of a workspace that is not archived yet"
    CONVERGED = "Every workspace reaches its desired state, or stops with an error that the faults explain"
    FILES = "Every acknowledged file is there, byte for byte, and no other version or file"
    NO_ORPHANS = "No volume, instance or storage job is left without an owner"
    NO_GARBAGE = "No unneeded archive and no unfinished upload is left"
    NO_OVERLAP = "Operations of one workspace never overlap"
    AUDIT = "The audit trail explains every state, and every operation that began has ended"
    FOLLOWERS = "Live updates end with the true state"


@dataclass(frozen=True)
class Violation:
    """A broken promise; `at` is in seconds since the game began."""

    invariant: Invariant
    workspace_id: str | None
    words: str
    at: float


class Findings:
    """Collects the results of all checks; a repeated violation is recorded once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._recorded: set[tuple[Invariant, str | None, str]] = set()
        self.checked: Counter[Invariant] = Counter()
        self.violations: list[Violation] = []

    def record(
        self, invariant: Invariant, problems: Iterable[str], workspace_id: str | None = None, checks: int = 1
    ) -> None:
        """Count the checks and record the problems that they found."""
        self.checked[invariant] += checks
        for words in problems:
            if (invariant, workspace_id, words) not in self._recorded:
                self._recorded.add((invariant, workspace_id, words))
                self.violations.append(Violation(invariant, workspace_id, words, self._clock()))
