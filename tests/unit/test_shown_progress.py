"""The progress that people see, also while no step of an operation runs."""

from datetime import datetime, timedelta

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.ports import Progress
from codehub.services.convergence import SILENCE, WAITING, shown_progress
from testkit.rows import NOW

ONE = WorkspaceId("one")
UPLOAD = Progress("upload", 21, 42)
LONG_AGO = NOW - SILENCE - timedelta(seconds=1)


@pytest.mark.parametrize(
    ("posted", "since", "shown"),
    [
        (UPLOAD, LONG_AGO, UPLOAD),
        (UPLOAD, NOW, UPLOAD),
        (None, NOW, None),
        (None, None, None),
        (None, LONG_AGO, WAITING),
    ],
    ids=["runs", "has just begun", "is about to begin", "nothing is under way", "waits"],
)
def test_an_operation_without_progress_for_long_is_waiting(
    posted: Progress | None, since: datetime | None, shown: Progress | None
) -> None:
    board = {} if posted is None else {ONE: posted}
    assert shown_progress(board, ONE, since, NOW) == shown


def test_no_progress_is_shown_while_the_board_is_unavailable() -> None:
    assert shown_progress(None, ONE, LONG_AGO, NOW) is None
