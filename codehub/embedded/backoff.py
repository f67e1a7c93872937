"""How long to wait before a crashed child is started again: pure, the clock stays outside."""

STABLE_SECONDS = 60.0
FIRST_DELAY_SECONDS = 0.25
SLOW_DELAY_SECONDS = 30.0
TOO_MANY_CRASHES = 6


def crashes_in_a_row(before: int, ran_seconds: float, stable_seconds: float = STABLE_SECONDS) -> int:
    """Count this crash; a child that ran well for a while starts a new row."""
    return 1 if ran_seconds >= stable_seconds else before + 1


def is_crash_loop(crashes: int) -> bool:
    """Whether it crashed so often that a person should look."""
    return crashes >= TOO_MANY_CRASHES


def restart_delay(crashes: int) -> float:
    """Seconds until the next attempt: doubling, then slow, but never the end."""
    if is_crash_loop(crashes):
        return SLOW_DELAY_SECONDS
    return float(FIRST_DELAY_SECONDS * 2 ** (crashes - 1))
