"""With 100,000 workspaces, each frequent query reads only its own partial index."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Select, text
from sqlalchemy.dialects import postgresql

from codehub.db.idle import select_due_for_archive, select_due_for_standby
from codehub.db.progress import select_in_error, select_not_converged, select_operations_in_progress
from codehub.db.running import select_count_running, select_running_of
from codehub.db.session import Database, create_engine
from tests import postgres
from tests.rows import NOW

OWNER = UUID("00000000-0000-0000-0000-000000000001")
SOMEBODY = UUID("00000000-0000-0000-0000-000000000002")

USERS = """
INSERT INTO users (id, username, password_hash)
SELECT lpad(number::text, 32, '0')::uuid, 'user ' || number, '-' FROM generate_series(1, 1000) AS number
"""

# 100 running, 2,000 in standby, 50 on their way up, 200 in error, 300 being deleted, 5,000 deleted, the rest
# archived.
WORKSPACES = """
INSERT INTO workspaces (id, owner_user_id, name, image_ref, instance_backend, storage_backend, home_store_key,
    phase, desired_state, operation, op_started_at, phase_changed_at, archive_key, error_reason, deleted_at)
SELECT gen_random_uuid(), lpad((1 + number % 1000)::text, 32, '0')::uuid, 'home', 'image', 'local',
    'local-dir', 'key', phase, desired_state, operation, CASE operation WHEN 'NONE' THEN NULL ELSE now() END,
    now() - number * interval '1 second', 'key',
    CASE phase WHEN 'ERROR' THEN 'Timeout' END, CASE desired_state WHEN 'DELETED' THEN now() END
FROM generate_series(1, 100000) AS number, LATERAL (SELECT
    CASE WHEN number <= 100 THEN 'RUNNING' WHEN number <= 2150 THEN 'STANDBY' WHEN number <= 2350 THEN 'ERROR'
        WHEN number <= 2650 THEN 'DELETING' WHEN number <= 7650 THEN 'DELETED' ELSE 'ARCHIVED' END,
    CASE WHEN number <= 100 THEN 'RUNNING' WHEN number <= 2100 THEN 'STANDBY'
        WHEN number <= 2150 THEN 'RUNNING' WHEN number <= 2350 THEN 'STANDBY'
        WHEN number <= 7650 THEN 'DELETED' ELSE 'ARCHIVED' END,
    CASE WHEN number BETWEEN 2101 AND 2150 THEN 'STARTING' ELSE 'NONE' END
) AS state (phase, desired_state, operation)
"""


@pytest.fixture(scope="module")
async def full_database(postgres_server: postgres.Server, migrated_template: str) -> AsyncIterator[Database]:
    """100,000 workspaces as an installation has them; tests only read it."""
    async with (
        postgres.new_database(postgres_server, migrated_template) as url,
        Database(create_engine(url)) as database,
    ):
        async with database.transaction() as session:
            # Nobody listens, so nobody needs 100,000 notices.
            await session.execute(text("ALTER TABLE workspaces DISABLE TRIGGER USER"))
            for statement in (USERS, WORKSPACES, "ANALYZE"):
                await session.execute(text(statement))
        yield database


QUERIES = {
    "standby TTL": (select_due_for_standby(NOW, timedelta(seconds=600), 100), {"ix_workspaces_idle_running"}),
    "archive TTL": (
        select_due_for_archive(NOW, timedelta(seconds=1800), 100),
        {"ix_workspaces_idle_standby"},
    ),
    "not converged": (
        select_not_converged(1000),
        {"ix_workspaces_not_converged", "ix_workspaces_being_deleted"},
    ),
    "limit per user": (select_running_of(OWNER, None), {"ix_workspaces_running"}),
    "limit in all": (select_count_running(None), {"ix_workspaces_running"}),
    "operations": (select_operations_in_progress(), {"ix_workspaces_operation"}),
    "errors": (select_in_error(100), {"ix_workspaces_error"}),
}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


@pytest.mark.parametrize("name", QUERIES)
async def test_query_reads_only_its_partial_index(full_database: Database, name: str) -> None:
    query, expected = QUERIES[name]
    plan = await explain(full_database, query)
    assert {node["Index Name"] for node in nodes(plan) if "Index Name" in node} == expected
    assert not [node for node in nodes(plan) if node["Node Type"] == "Seq Scan"]


async def test_parked_workspaces_are_not_read_to_find_those_under_way(database: Database) -> None:
    """The hard case for the planner: nothing but workspaces that are where they should be."""
    async with database.transaction() as session:
        await session.execute(text(USERS))
        await session.execute(text(WORKSPACES.replace("(1, 100000)", "(7651, 17650)")))
        await session.execute(text("ANALYZE workspaces"))
    plan = await explain(database, select_not_converged(1000))
    assert not [node for node in nodes(plan) if node["Node Type"] == "Seq Scan"]


async def explain(database: Database, query: Select[*tuple[Any, ...]]) -> dict[str, Any]:
    sql = query.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True})  # type: ignore[no-untyped-call]
    async with database.transaction() as session:
        [plan] = (await session.scalars(text(f"EXPLAIN (FORMAT JSON) {sql}".replace(":", r"\:")))).one()
    found: dict[str, Any] = plan["Plan"]
    return found
