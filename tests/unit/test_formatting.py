"""Amounts as people read them."""

import pytest

from codehub.formatting import format_size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_940_000, "9.9 MB"),
        (312_400_000, "312 MB"),
        (999_600_000, "1.0 GB"),
        (5 * 10**15, "5000 TB"),
    ],
)
def test_sizes_are_short(count: int, text: str) -> None:
    assert format_size(count) == text
