"""Sizes and times as people say them; times are told in the time zone of the reader."""

import re
from datetime import UTC, datetime, timedelta

from codehub.formatting import format_size

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
DURATION = re.compile(r"(\d+) ?(s|m|min|h|d|)")
# Nearer than this, "in 40 min" says more than a time of day.
NEAR = timedelta(hours=1)


def size(count: float | None) -> str:
    return "?" if count is None else format_size(count)


def rough(duration: timedelta) -> str:
    """In the greatest unit: `3 d`, `8 min`."""
    seconds = int(abs(duration.total_seconds()))
    for length, unit in UNITS:
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return "0 s"


def ago(moment: str | None) -> str:
    return "never" if moment is None else f"{rough(now() - parse_time(moment))} ago"


def at(moment: str, from_: datetime | None = None) -> str:
    """When something will be: soon in minutes, later by the clock."""
    there, here = parse_time(moment).astimezone(), from_ or now()
    if there <= here:
        return "now"
    if there - here < NEAR:
        return f"in {rough(there - here)}"
    days = (there.date() - here.astimezone(there.tzinfo).date()).days
    day = {0: "today", 1: "tomorrow"}.get(days, f"on {there:%Y-%m-%d}")
    return f"{day} {there:%H:%M}"


def clock(moment: str) -> str:
    return f"{parse_time(moment).astimezone():%Y-%m-%d %H:%M:%S}"


def parse_time(moment: str) -> datetime:
    return datetime.fromisoformat(moment)


def parse_duration(text: str) -> int:
    """Seconds of `600`, `10m`, `2h` or `7d`; raises ValueError."""
    match = DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError("write it as 600, 10m, 2h or 7d")
    return int(match[1]) * SECONDS[match[2]]


def now() -> datetime:
    return datetime.now(UTC)
