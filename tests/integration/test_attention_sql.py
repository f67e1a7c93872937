"""The SQL predicates select what the rules of the domain select, for all combinations."""

from collections.abc import Mapping
from itertools import product

from sqlalchemy import text

from codehub.db import predicates
from codehub.db.session import Database
from codehub.domain.attention import LifecycleState
from codehub.domain.failures import is_terminal
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase

# Without the table, whose CHECKs would refuse some combinations.
ROWS = """
SELECT number FROM unnest(
    CAST(:phases AS text[]), CAST(:operations AS text[]), CAST(:desired AS text[]), CAST(:deleted AS bool[]),
    CAST(:purges AS bool[]), CAST(:reasons AS text[]), CAST(:recovering AS bool[])
) WITH ORDINALITY AS given (phase, operation, desired_state, deleted, purge, error_reason, recovering, number)
CROSS JOIN LATERAL (SELECT
    CASE WHEN deleted THEN now() END AS deleted_at,
    now() AS recover_requested_at,
    CASE WHEN recovering THEN NULL ELSE now() END AS recover_handled_at
) AS derived
WHERE
"""

EVERY_STATE = [
    LifecycleState(phase, operation, desired, recovering, deleted, purge, reason)
    for phase, operation, desired, recovering, deleted, purge, reason in product(
        Phase, Operation, DesiredState, (False, True), (False, True), (False, True), (None, *ErrorReason)
    )
]


async def selected(database: Database, predicate: str) -> set[LifecycleState]:
    async with database.transaction() as session:
        numbers = await session.scalars(text(f"{ROWS} ({predicate})"), columns())
        return {EVERY_STATE[number - 1] for number in numbers}


def columns() -> Mapping[str, object]:
    return {
        "phases": [each.phase for each in EVERY_STATE],
        "operations": [each.operation for each in EVERY_STATE],
        "desired": [each.desired_state for each in EVERY_STATE],
        "deleted": [each.deleted for each in EVERY_STATE],
        "purges": [each.purge for each in EVERY_STATE],
        "reasons": [each.error_reason for each in EVERY_STATE],
        "recovering": [each.recovering for each in EVERY_STATE],
    }


def can_be(state: LifecycleState) -> bool:
    """Return whether the combination can exist."""
    ended = not is_terminal(state.error_reason) or state.operation is Operation.NONE
    in_error = state.phase is Phase.ERROR
    return (
        (ended or (state.deleted and state.purge))
        and (state.deleted or not state.purge)
        and state.deleted is (state.desired_state is DesiredState.DELETED)
        and not (in_error and (state.operation is not Operation.NONE or state.error_reason is None))
    )


async def test_sql_finds_exactly_what_needs_a_person(database: Database) -> None:
    found = await selected(database, predicates.NEEDS_PERSON)
    assert found == {each for each in EVERY_STATE if each.needs_person}
    assert any(each.deleted for each in found)


async def test_the_sweep_wakes_exactly_what_is_not_settled(database: Database) -> None:
    arms = predicates.NOT_CONVERGED, predicates.BEING_DELETED, predicates.RECOVERING
    woken = await selected(database, " OR ".join(f"({arm})" for arm in arms))
    possible = {each for each in EVERY_STATE if can_be(each)}
    assert woken & possible == {each for each in possible if not each.is_settled}
