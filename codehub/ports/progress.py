"""The progress of long steps."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """The progress of a long step; `total` is None if it is unknown."""

    step: str
    done: int = 0
    total: int | None = None
    unit: str = "bytes"


# A step calls this only when it has made progress; a step that makes none for long is ended.
Report = Callable[[Progress], None]
