"""Durations, times and progress as text; page.js writes them in the same way."""

from datetime import UTC, datetime, timedelta

from codehub.formatting import format_size
from codehub.ports import Progress
from codehub.words import NOTABLE_STEPS, STEPS

MINUTE = 60


def format_duration(elapsed: timedelta) -> str:
    minutes, seconds = divmod(max(0, int(elapsed.total_seconds())), MINUTE)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def format_time(when: datetime, now: datetime) -> str:
    """Return the time in UTC: only the script knows the reader's time zone."""
    utc = when.astimezone(UTC)
    year = "" if utc.year == now.astimezone(UTC).year else f" {utc.year}"
    return f"{utc.day} {utc:%B}{year}, {utc:%H:%M} UTC"


def bar_values(progress: Progress | None) -> tuple[int, int] | None:
    """Return value and maximum of the progress bar. Seconds count up to a deadline, so they have none."""
    if progress is None or not progress.total or progress.unit == "seconds":
        return None
    return min(progress.done, progress.total), progress.total


def progress_text(progress: Progress | None, elapsed: timedelta | None) -> str:
    """Return the step if it is notable, then the bytes so far, or the elapsed time if none move."""
    named = [STEPS[progress.step]] if progress is not None and progress.step in NOTABLE_STEPS else []
    return " · ".join([*named, _amount(progress, elapsed)])


def _amount(progress: Progress | None, elapsed: timedelta | None) -> str:
    if progress is None or progress.unit != "bytes" or not (progress.done or progress.total):
        return f"{format_duration(elapsed)} so far" if elapsed is not None else ""
    return format_size(progress.done) + (f" of {format_size(progress.total)}" if progress.total else "")
