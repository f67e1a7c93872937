"""Break the rules one at a time: the model must notice each break."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from codehub.domain import garbage, judge, planner, recovery, transitions
from codehub.domain.conditions import NOT_OBSERVED, Snapshot
from codehub.domain.naming import ArchiveName
from codehub.domain.states import Operation
from tests.model import controller, machine

Patch = tuple[object, str, Any]


def ignore_the_restore_marker(snapshot: Snapshot) -> bool:
    return True


def reuse_the_archive_op_id(snapshot: Snapshot, operation: Operation, new_archive_op_id: str) -> Snapshot:
    return transitions.claim(snapshot, operation, snapshot.archive_op_id or new_archive_op_id)


def never_halt(snapshot: Snapshot) -> bool:
    return False


def ignore_violations(snapshot: Snapshot) -> None:
    return None


def forget_that_the_volume_vanished(
    snapshot: Snapshot, choice: recovery.RecoverChoice, archive_key: str | None
) -> recovery.Recovery:
    recovered = recovery.recover(snapshot, choice, archive_key)
    conditions = replace(recovered.snapshot.conditions, volume_ready=NOT_OBSERVED)
    return replace(recovered, snapshot=replace(recovered.snapshot, conditions=conditions))


def accept_every_observation(paused: controller.PausedObservation, row: Snapshot) -> bool:
    return True


def collect_archives_left_behind(
    key: str, name: ArchiveName, owner: garbage.ArchiveOwner, now: datetime, periods: garbage.GracePeriods
) -> bool:
    return garbage.is_protected(key, name, replace(owner, given_up=frozenset()), now, periods)


def collect_the_last_copy(
    key: str, name: ArchiveName, owner: garbage.ArchiveOwner, now: datetime, periods: garbage.GracePeriods
) -> bool:
    return garbage.is_protected(key, name, replace(owner, archive_missing=False), now, periods)


def commit_nothing(snapshot: Snapshot) -> Snapshot:
    return snapshot


def delete_at_once(snapshot: Snapshot) -> Operation:
    return Operation.DELETING


def forget_the_undelete_period(*_arguments: object) -> bool:
    return False


def remove_any_volume(*_arguments: object) -> bool:
    return True


def set_aside_unseen(snapshot: Snapshot, choice: recovery.RecoverChoice) -> bool:
    return snapshot.conditions.home_is_out_of_reach and choice in recovery.choices(snapshot)


def refuse_after_setting_aside(snapshot: Snapshot, choice: recovery.RecoverChoice) -> bool:
    return False


BROKEN_RULES: dict[str, list[Patch]] = {
    "a half-restored volume counts as complete": [(judge, "_holds_complete_home", ignore_the_restore_marker)],
    "a vanished volume or archive is not an error": [(judge, "_violation", ignore_violations)],
    "a later archive operation reuses an id": [(controller, "claim", reuse_the_archive_op_id)],
    "the volume goes before the key is stored": [(controller, "commit_archive", commit_nothing)],
    "a failed deletion continues": [(planner, "_is_halted", never_halt)],
    "a paused worker stores an outdated observation": [(controller, "is_current", accept_every_observation)],
    "a deletion removes a home that is not archived": [
        (planner, "_next_deletion_step", delete_at_once),
        (controller, "may_remove_volume", remove_any_volume),
    ],
    "the last archive of a deleted workspace goes with the others": [
        (garbage, "_can_undelete", forget_the_undelete_period)
    ],
    "retry forgets that the volume vanished": [(machine, "recover", forget_that_the_volume_vanished)],
    "an IDE that stalls for a moment counts as down": [(judge, "HANG_GRACE", timedelta(0))],
    "an IDE that hangs counts as ready forever": [(judge, "HANG_GRACE", timedelta.max)],
    "a discarded volume is taken for an empty home": [(recovery, "DISCARDED", None)],
    "a home on a lost node is given up for an archive that nobody saw": [
        (machine, "must_set_aside", set_aside_unseen)
    ],
    "a half-restored home on a lost node cannot be given up": [
        (recovery, "_only_archive_is_left", refuse_after_setting_aside)
    ],
    "archives that a choice left behind are collected": [
        (machine, "is_protected", collect_archives_left_behind)
    ],
    "an older archive goes while the current one is missing": [
        (machine, "is_protected", collect_the_last_copy)
    ],
}


@contextmanager
def broken(patches: list[Patch]) -> Iterator[None]:
    with ExitStack() as stack:
        for target, name, replacement in patches:
            stack.enter_context(patch.object(target, name, replacement))
        yield


@pytest.mark.parametrize("rule", BROKEN_RULES)
def test_the_model_notices_when(rule: str) -> None:
    search = settings(
        # One of the rules takes thousands to break; the others are found much earlier.
        max_examples=6000,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with broken(BROKEN_RULES[rule]), pytest.raises((AssertionError, ValueError)):
        run_state_machine_as_test(machine.Lifecycle, settings=search)
