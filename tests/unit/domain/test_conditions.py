"""Conditions in the JSONB column, and parsing of desired states."""

import json

import pytest

from codehub.domain.conditions import Conditions, Snapshot, Status, conditions_from_json, conditions_to_json
from codehub.domain.states import DesiredState, parse_desired_state
from tests.unit.domain.builders import NOW, archived, pending, running, standby


@pytest.mark.parametrize("snapshot", [pending(), archived(), standby(), running()], ids=lambda s: s.phase)
def test_conditions_survive_a_round_trip_through_the_column(snapshot: Snapshot) -> None:
    document = json.loads(json.dumps(conditions_to_json(snapshot.conditions)))
    assert conditions_from_json(document) == snapshot.conditions


def test_the_column_looks_like_kubernetes_conditions() -> None:
    document = conditions_to_json(running().conditions)
    assert list(document) == [
        "storage.volume_ready",
        "storage.volume_reachable",
        "storage.archive_ready",
        "infra.container_ready",
        "infra.container_answers",
        "infra.configuration_current",
        "policy.healthy",
    ]
    assert document["infra.container_ready"] == {
        "status": "True",
        "reason": "Ready",
        "message": "The container accepts traffic.",
        "last_transition_time": NOW.isoformat(),
    }


def test_a_missing_condition_was_never_observed() -> None:
    assert conditions_from_json({}) == Conditions()
    assert conditions_from_json({"policy.healthy": {"status": None}}).healthy.status is Status.UNKNOWN


@pytest.mark.parametrize("desired", DesiredState)
def test_a_desired_state_is_parsed_by_its_name(desired: DesiredState) -> None:
    assert parse_desired_state(desired.value) is desired


def test_pending_is_an_older_name_of_archived() -> None:
    assert parse_desired_state("PENDING") is DesiredState.ARCHIVED


def test_an_unknown_desired_state_is_refused() -> None:
    with pytest.raises(ValueError, match="SLEEPING"):
        parse_desired_state("SLEEPING")
