"""Format and parse sizes, times and durations; times are shown in the local time zone."""

import re
from datetime import UTC, datetime, timedelta

from codehub.formatting import format_size as format_bytes

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
DURATION = re.compile(r"(\d+) ?(s|m|min|h|d|)")
# Below this, show "in 40 min" instead of a time of day.
SOON = timedelta(hours=1)
# Below this, show tenths of a second.
BRIEF_SECONDS = 10


def format_size(count: float | None) -> str:
    return "?" if count is None else format_bytes(count)


def round_duration(duration: timedelta) -> str:
    """Return the duration in its largest unit: `3 d`, `8 min`."""
    seconds = int(abs(duration.total_seconds()))
    for length, unit in UNITS:
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return "0 s"


def format_duration(duration: timedelta) -> str:
    """Return the duration in its two largest units: `3 d 4 h`, `5 min 2 s`, `0.8 s`."""
    seconds = max(duration.total_seconds(), 0.0)
    if seconds < BRIEF_SECONDS:
        return f"{seconds:.1f} s"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {int(seconds % 60)} s" if minutes else f"{int(seconds)} s"


def ago(moment: str | None) -> str:
    return "never" if moment is None else f"{round_duration(now() - parse_time(moment))} ago"


def upcoming(moment: str, from_: datetime | None = None) -> str:
    """Return a future time: `in 40 min`, `tomorrow 09:00`."""
    there, here = parse_time(moment).astimezone(), from_ or now()
    if there <= here:
        return "now"
    if there - here < SOON:
        return f"in {round_duration(there - here)}"
    days = (there.date() - here.astimezone(there.tzinfo).date()).days
    day = {0: "today", 1: "tomorrow"}.get(days, f"on {there:%Y-%m-%d}")
    return f"{day} {there:%H:%M}"


def local_time(moment: str) -> str:
    return f"{parse_time(moment).astimezone():%Y-%m-%d %H:%M:%S}"


def parse_time(moment: str) -> datetime:
    return datetime.fromisoformat(moment)


def parse_duration(text: str) -> int:
    """Return the seconds of `600`, `10m`, `2h` or `7d`; raise ValueError for anything else."""
    match = DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError("write it as 600, 10m, 2h or 7d")
    return int(match[1]) * SECONDS[match[2]]


def now() -> datetime:
    return datetime.now(UTC)
