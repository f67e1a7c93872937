"""What must hold, how often that was looked at, and where it did not."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Invariant(StrEnum):
    """One promise, in the words of the report."""

    LIMITS = "Nobody ever runs more workspaces than the limits allow"
    ONE_INSTANCE = "A workspace never has two instances"
    ARCHIVE_KEPT = "No archive that something needs is ever removed, and no other before its grace is over"
    READ_BACK = "People read what they wrote, while everything breaks"
    ECHOES = "WebSockets echo what was sent, or end"
    NOT_LOCKED_OUT = "While S3 is away, nothing that is not archived yet is kept from its owner"
    CONVERGED = "Every workspace arrives where it shall be, or stops with a reason that the faults explain"
    FILES = "Every acknowledged file is there, byte for byte, and nothing older or foreign"
    NO_ORPHANS = "No volume, instance or storage job is left that belongs to nothing"
    NO_GARBAGE = "No archive and no half-done upload is left that nothing needs"
    NO_OVERLAP = "Operations of one workspace never overlap"
    AUDIT = "The audit trail explains every state, and every operation that began has ended"
    FOLLOWERS = "Live updates end with the true state"


@dataclass(frozen=True)
class Violation:
    """A promise that was broken; `at` is in seconds since the game began."""

    invariant: Invariant
    workspace_id: str | None
    words: str
    at: float


class Findings:
    """Collects from everybody who looks; what goes on being wrong is said once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._said: set[tuple[Invariant, str | None, str]] = set()
        self.checked: Counter[Invariant] = Counter()
        self.violations: list[Violation] = []

    def note(
        self, invariant: Invariant, problems: Iterable[str], workspace_id: str | None = None, checks: int = 1
    ) -> None:
        """So many looks were taken, and this is all that they found."""
        self.checked[invariant] += checks
        for words in problems:
            if (invariant, workspace_id, words) not in self._said:
                self._said.add((invariant, workspace_id, words))
                self.violations.append(Violation(invariant, workspace_id, words, self._clock()))
