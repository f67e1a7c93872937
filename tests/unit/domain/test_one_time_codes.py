"""Which time steps count, and that none counts twice."""

from datetime import UTC, datetime, timedelta

import pyotp
import pytest

from codehub.domain.one_time_codes import acceptable_steps, step_at

# RFC 6238, appendix B, for SHA-1; its codes have eight digits.
RFC_SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # noqa: S105
RFC_VECTORS = [
    (59, "94287082"),
    (1111111109, "07081804"),
    (1111111111, "14050471"),
    (1234567890, "89005924"),
    (2000000000, "69279037"),
    (20000000000, "65353130"),
]
NOW = datetime(2026, 7, 1, 12, 0, 15, tzinfo=UTC)


@pytest.mark.parametrize(("seconds", "code"), RFC_VECTORS)
def test_the_steps_are_those_of_the_rfc(seconds: int, code: str) -> None:
    step = step_at(datetime.fromtimestamp(seconds, UTC))
    assert pyotp.TOTP(RFC_SECRET, digits=8).generate_otp(step) == code


def test_the_current_step_and_its_neighbors_count() -> None:
    now = step_at(NOW)
    assert acceptable_steps(NOW, None) == [now - 1, now, now + 1]
    assert acceptable_steps(NOW + timedelta(seconds=15), None) == [now, now + 1, now + 2]


def test_a_used_step_and_earlier_ones_never_count_again() -> None:
    now = step_at(NOW)
    assert acceptable_steps(NOW, now - 1) == [now, now + 1]
    assert acceptable_steps(NOW, now) == [now + 1]
    assert acceptable_steps(NOW, now + 1) == []
    # A clock that was set back does not bring used codes to life.
    assert acceptable_steps(NOW - timedelta(hours=1), now) == []
