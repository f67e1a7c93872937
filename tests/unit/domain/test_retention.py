"""When the row of a deleted workspace may be removed."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from codehub.domain.retention import DeletedWorkspace, may_forget
from codehub.domain.states import Operation, Phase
from tests.unit.domain.builders import NOW

OVER = DeletedWorkspace(Phase.DELETED, Operation.NONE, NOW - timedelta(seconds=1), has_archives=False)


@pytest.mark.parametrize(
    ("phase", "operation", "has_archives"), list(product(Phase, Operation, (False, True)))
)
def test_a_row_may_be_removed_when_nothing_else_is_left_of_its_workspace(
    phase: Phase, operation: Operation, has_archives: bool
) -> None:
    workspace = replace(OVER, phase=phase, operation=operation, has_archives=has_archives)
    assert may_forget(workspace, NOW) is (workspace == OVER)


def test_a_row_is_kept_for_its_period_and_after_an_undelete() -> None:
    assert not may_forget(OVER, NOW - timedelta(seconds=1))
    assert not may_forget(replace(OVER, deleted_at=None), NOW)
