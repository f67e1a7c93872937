"""An operation is complete when its result is observed, and not before."""

from dataclasses import replace

import pytest

from codehub.domain.completion import COMPLETION_RULES, is_complete
from codehub.domain.conditions import Snapshot
from codehub.domain.states import Operation
from tests.unit.domain.builders import (
    ARCHIVE_ONLY,
    NEW_KEY,
    OLD_KEY,
    VOLUME_AND_ARCHIVE,
    archived,
    new_snapshot,
    observed,
    pending,
    running,
    standby,
)

HALF_RESTORED = observed(new_snapshot(key=NEW_KEY, marker=OLD_KEY), VOLUME_AND_ARCHIVE)
UNSEEN_ARCHIVE = observed(new_snapshot(key=NEW_KEY), ARCHIVE_ONLY)

DONE: dict[Operation, list[Snapshot]] = {
    Operation.PROVISIONING: [standby(), running()],
    Operation.RESTORING: [standby(), running()],
    Operation.STARTING: [running()],
    Operation.STOPPING: [standby()],
    Operation.ARCHIVING: [archived()],
    Operation.CREATE_EMPTY_ARCHIVE: [archived(), HALF_RESTORED, standby(), running()],
    Operation.DELETING: [pending(), archived()],
}
EVERYTHING = [pending(), archived(), HALF_RESTORED, standby(), running()]


@pytest.mark.parametrize("operation", DONE)
@pytest.mark.parametrize("snapshot", EVERYTHING, ids=["pending", "archived", "half", "standby", "running"])
def test_an_operation_is_complete_exactly_when_its_result_is_observed(
    operation: Operation, snapshot: Snapshot
) -> None:
    assert is_complete(operation, snapshot) == (snapshot in DONE[operation])


def test_every_operation_has_a_rule() -> None:
    assert set(COMPLETION_RULES) == set(Operation) - {Operation.NONE}


def test_an_archive_whose_key_is_not_stored_is_not_complete() -> None:
    assert not is_complete(Operation.ARCHIVING, replace(archived(), archive_key=None))
