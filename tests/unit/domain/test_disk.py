"""When a workspace is close to its disk limit, and when its start is refused."""

from datetime import UTC, datetime, timedelta

import pytest

from codehub.domain.disk import DiskLevel, DiskUsage, StartRefusal, disk_level, effective_limit, start_refusal
from codehub.domain.states import Phase

STOPPED = datetime(2026, 11, 18, 6, tzinfo=UTC)
BEFORE, AFTER = STOPPED - timedelta(seconds=1), STOPPED
LIMIT = 1000
OVER, BELOW = LIMIT + 1, LIMIT


@pytest.mark.parametrize(
    ("used", "limit", "level"),
    [
        (0, LIMIT, DiskLevel.OK),
        (799, LIMIT, DiskLevel.OK),
        (800, LIMIT, DiskLevel.HIGH),
        (899, LIMIT, DiskLevel.HIGH),
        (900, LIMIT, DiskLevel.CRITICAL),
        (1000, LIMIT, DiskLevel.CRITICAL),
        (1001, LIMIT, DiskLevel.OVER),
        (2**62, None, DiskLevel.OK),
    ],
)
def test_the_levels(used: int, limit: int | None, level: DiskLevel) -> None:
    assert disk_level(used, limit) is level


@pytest.mark.parametrize(
    ("own", "installation", "limit"),
    [(None, None, None), (None, 5, 5), (7, 5, 7), (7, None, 7), (0, 5, None), (3, 5, 3)],
)
def test_an_administrator_s_limit_replaces_the_installation_s(
    own: int | None, installation: int | None, limit: int | None
) -> None:
    assert effective_limit(own, installation) == limit


@pytest.mark.parametrize(
    ("phase", "used", "measured_at", "refusal"),
    [
        (Phase.STANDBY, BELOW, AFTER, None),
        (Phase.STANDBY, BELOW, BEFORE, None),
        (Phase.STANDBY, OVER, AFTER, StartRefusal.OVER),
        (Phase.STANDBY, OVER, BEFORE, StartRefusal.NOT_MEASURED_SINCE),
        (Phase.ARCHIVED, BELOW, BEFORE, None),
        (Phase.ARCHIVED, OVER, BEFORE, StartRefusal.ARCHIVED),
        (Phase.ARCHIVED, OVER, AFTER, StartRefusal.ARCHIVED),
        # On its way down it can be asked to turn back, which is a start too.
        (Phase.RUNNING, OVER, AFTER, StartRefusal.OVER),
    ],
)
def test_a_start_is_refused_above_the_limit(
    phase: Phase, used: int, measured_at: datetime, refusal: StartRefusal | None
) -> None:
    assert start_refusal(DiskUsage(used, measured_at), LIMIT, phase, STOPPED) is refusal


def test_what_was_never_measured_may_start() -> None:
    assert start_refusal(None, LIMIT, Phase.STANDBY, STOPPED) is None


def test_without_a_limit_everything_may_start() -> None:
    assert start_refusal(DiskUsage(2**62, AFTER), None, Phase.STANDBY, STOPPED) is None


def test_at_least_too_much_is_too_much() -> None:
    incomplete = DiskUsage(OVER, AFTER, complete=False)
    assert start_refusal(incomplete, LIMIT, Phase.STANDBY, STOPPED) is StartRefusal.OVER
