"""Sizes, durations and times as people write them; the script writes them in the same way."""

from datetime import UTC, datetime, timedelta

from codehub.formatting import format_size
from codehub.ports import Progress
from codehub.words import NOTABLE_STEPS, STEPS

MINUTE = 60


def duration(elapsed: timedelta) -> str:
    minutes, seconds = divmod(max(0, int(elapsed.total_seconds())), MINUTE)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def moment(when: datetime, now: datetime) -> str:
    """In UTC, because only the script knows where its reader is."""
    there = when.astimezone(UTC)
    year = "" if there.year == now.astimezone(UTC).year else f" {there.year}"
    return f"{there.day} {there:%B}{year}, {there:%H:%M} UTC"


def share(progress: Progress | None) -> tuple[int, int] | None:
    """How much of how much. Seconds are counted up to a deadline, which nobody waits for to be reached."""
    if progress is None or not progress.total or progress.unit == "seconds":
        return None
    return min(progress.done, progress.total), progress.total


def figures(progress: Progress | None, elapsed: timedelta | None) -> str:
    """Bytes where bytes move, else how long it has taken so far; before that a step that needs a name."""
    named = [STEPS[progress.step]] if progress is not None and progress.step in NOTABLE_STEPS else []
    return " · ".join([*named, _amount(progress, elapsed)])


def _amount(progress: Progress | None, elapsed: timedelta | None) -> str:
    if progress is None or progress.unit != "bytes" or not (progress.done or progress.total):
        return f"{duration(elapsed)} so far" if elapsed is not None else ""
    return format_size(progress.done) + (f" of {format_size(progress.total)}" if progress.total else "")
