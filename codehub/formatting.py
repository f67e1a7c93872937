"""Amounts as people read them; the dashboard's and the pages' scripts write them in the same way."""

UNITS = ("B", "kB", "MB", "GB", "TB")
STEP = 1000
# Below this, a decimal adds information.
SMALL = 10


def format_size(count: float) -> str:
    """Return a number of bytes as `999 B`, `1.5 MB` or `312 MB`."""
    value, unit = float(count), 0
    # Not 1000: values that would round up to it belong to the next unit.
    while value >= STEP - 0.5 and unit < len(UNITS) - 1:
        value, unit = value / STEP, unit + 1
    digits = 1 if unit and value < SMALL else 0
    return f"{value:.{digits}f} {UNITS[unit]}"
