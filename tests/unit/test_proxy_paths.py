"""Paths are read as the most lenient server would read them."""

import pytest

from proxy.paths import plain_path


@pytest.mark.parametrize(
    "spelling",
    [
        b"/metrics",
        b"/metrics?x=1",
        b"/%6detrics",
        b"/%6Detrics",
        b"/%256detrics",
        b"//metrics",
        b"///metrics//",
        b"/./metrics",
        b"/metrics/.",
        b"/w/../metrics",
        b"/w/%2e%2e/metrics",
        b"/w/..%2fmetrics",
        b"/..%5cmetrics",
        b"/\\metrics",
        b"/%2fmetrics",
        b"/metrics;x=1",
        b"/metrics%3bx",
    ],
)
def test_no_spelling_hides_a_path(spelling: bytes) -> None:
    assert plain_path(spelling) == b"/metrics"


@pytest.mark.parametrize(
    "path", [b"/", b"/api/v1/workspaces", b"/assets/0a1b/app.js", b"/metrics-of-mine", b"/w/metrics"]
)
def test_a_plain_path_stays_as_it_is(path: bytes) -> None:
    assert plain_path(path + b"?next=%2Fmetrics//..") == path
