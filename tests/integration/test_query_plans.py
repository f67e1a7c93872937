"""With 100,000 workspaces, each frequent query reads only its own partial index."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Executable, text
from sqlalchemy.dialects import postgresql

from codehub.db import retention
from codehub.db.egress import select_log
from codehub.db.egress_pages import EgressFilter, list_egress, select_egress
from codehub.db.events import last_event_id, select_counts, select_events
from codehub.db.idempotency import delete_expired
from codehub.db.operations import select_events_of, select_operation_events
from codehub.db.running_slots import select_count_running, select_running
from codehub.db.session import Database, create_engine
from codehub.db.sweeps import (
    Ttl,
    select_count_unfinished,
    select_due_for_archive,
    select_due_for_standby,
    select_not_converged,
)
from codehub.db.usage import select_usage
from codehub.db.views import Position, ViewFilter, select_needing_person, select_page
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.states import DesiredState, Phase
from codehub.services.workspaces import KEY_LIFETIME
from testkit import postgres
from testkit.rows import NOW

OWNER = UUID("00000000-0000-0000-0000-000000000001")
OTHER_USER = UUID("00000000-0000-0000-0000-000000000002")

USERS = """
INSERT INTO users (id, username, password_hash)
SELECT lpad(number::text, 32, '0')::uuid, 'user ' || number, '-' FROM generate_series(1, 1000) AS number
"""

# 100 running, 2,000 in standby, 50 starting, 200 in error, 300 being deleted, 5,000 deleted, the others
# archived.
WORKSPACES = """
INSERT INTO workspaces (id, owner_user_id, name, image_ref, instance_backend, storage_backend, home_store_key,
    phase, desired_state, operation, op_started_at, phase_changed_at, archive_key, error_reason, deleted_at,
    created_at)
SELECT gen_random_uuid(), lpad((1 + number % 1000)::text, 32, '0')::uuid, 'home', 'image', 'local',
    'local-dir', 'key', phase, desired_state, operation, CASE operation WHEN 'NONE' THEN NULL ELSE now() END,
    now() - number * interval '1 second', 'key ' || number,
    CASE phase WHEN 'ERROR' THEN 'Timeout' END, CASE desired_state WHEN 'DELETED' THEN now() END,
    now() - number * interval '1 minute'
FROM generate_series(1, 100000) AS number, LATERAL (SELECT
    CASE WHEN number <= 100 THEN 'RUNNING' WHEN number <= 2150 THEN 'STANDBY' WHEN number <= 2350 THEN 'ERROR'
        WHEN number <= 2650 THEN 'DELETING' WHEN number <= 7650 THEN 'DELETED' ELSE 'ARCHIVED' END,
    CASE WHEN number <= 100 THEN 'RUNNING' WHEN number <= 2100 THEN 'STANDBY'
        WHEN number <= 2150 THEN 'RUNNING' WHEN number <= 2350 THEN 'STANDBY'
        WHEN number <= 7650 THEN 'DELETED' ELSE 'ARCHIVED' END,
    CASE WHEN number BETWEEN 2101 AND 2150 THEN 'STARTING' ELSE 'NONE' END
) AS state (phase, desired_state, operation)
"""

ARCHIVES = """
INSERT INTO archives (key, workspace_id, archive_op_id)
SELECT archive_key, id, gen_random_uuid() FROM workspaces
"""

# Long histories: 200 operations for each of the owner's hundred workspaces, interleaved.
EVENTS = """
INSERT INTO workspace_events (workspace_id, at, kind, actor, operation)
SELECT workspaces.id, now(), kind, 'control-plane', 'STARTING'
FROM workspaces, generate_series(1, 200) AS turn,
    unnest(ARRAY['operation_claimed', 'attempt_failed', 'operation_completed', 'state_requested'])
    WITH ORDINALITY AS line (kind, place)
WHERE owner_user_id = lpad('1', 32, '0')::uuid
ORDER BY turn, workspaces.id, place
"""

# The keys of a day; a few have expired.
KEYS = """
INSERT INTO idempotency_keys (user_id, key, request_hash, workspace_id, created_at)
SELECT lpad('1', 32, '0')::uuid, number, '', gen_random_uuid(), now() - number * interval '4 seconds'
FROM generate_series(1, 22000) AS number
"""

# A week in which the owner's hundred workspaces were always used.
USAGE = """
INSERT INTO workspace_usage (workspace_id, bucket)
SELECT workspaces.id, date_bin('15 minutes', now(), 'epoch') - turn * interval '15 minutes'
FROM workspaces, generate_series(0, 7 * 96) AS turn WHERE owner_user_id = lpad('1', 32, '0')::uuid
"""

# A week in which they connected to three names an hour.
EGRESS_LOG = """
INSERT INTO egress_log (workspace_id, hour, name, port, verdict, count)
SELECT workspaces.id, date_trunc('hour', now()) - turn * interval '1 hour', number || '.example', 443,
    'allowed', 1
FROM workspaces, generate_series(0, 7 * 24) AS turn, generate_series(1, 3) AS number
WHERE owner_user_id = lpad('1', 32, '0')::uuid
"""

SESSIONS = """
INSERT INTO sessions (id, user_id, token_hash, expires_at)
SELECT gen_random_uuid(), users.id, sha256((users.id::text || turn)::bytea), now() - turn * interval '1 day'
FROM users, generate_series(-14, 10) AS turn
"""
TOKENS = """
INSERT INTO api_tokens (id, user_id, name, token_hash, expires_at, revoked_at)
SELECT gen_random_uuid(), users.id, 'token', sha256((users.id::text || turn)::bytea),
    CASE WHEN turn % 3 > 0 THEN now() - turn * interval '1 day' END, CASE WHEN turn % 5 = 0 THEN now() END
FROM users, generate_series(-14, 10) AS turn
"""

RECOVERED_ONCE = """
UPDATE workspaces SET recover_choice = 'retry', recover_requested_at = now(), recover_handled_at = now()
"""

ROWS = (USERS, WORKSPACES, ARCHIVES, EVENTS, KEYS, USAGE, EGRESS_LOG, SESSIONS, TOKENS)


@pytest.fixture(scope="module")
async def full_database(postgres_server: postgres.Server, migrated_template: str) -> AsyncIterator[Database]:
    """Yield a database with 100,000 realistic workspaces; tests only read it."""
    async with (
        postgres.new_database(postgres_server, migrated_template) as url,
        Database(create_engine(url)) as database,
    ):
        async with database.transaction() as session:
            # There are no listeners, so 100,000 notifications are useless.
            await session.execute(text("ALTER TABLE workspaces DISABLE TRIGGER USER"))
            for statement in (*ROWS, "ANALYZE"):
                await session.execute(text(statement))
        yield database


TTL = Ttl(default=timedelta(seconds=600), longest=timedelta(days=7))
QUERIES = {
    "standby TTL": (select_due_for_standby(NOW, TTL, 100), {"ix_workspaces_idle_running"}),
    "archive TTL": (
        select_due_for_archive(NOW, TTL, 100),
        {"ix_workspaces_idle_standby"},
    ),
    "not converged": (
        select_not_converged(1000, now=NOW, silent=list(Resource)),
        {"ix_workspaces_not_converged", "ix_workspaces_being_deleted", "ix_workspaces_recovering"},
    ),
    "limit per user": (select_running(OWNER, None), {"ix_workspaces_running"}),
    "limit in all": (select_count_running(None), {"ix_workspaces_running"}),
    "archives to choose from": (
        select_count_unfinished(DesiredState.ARCHIVED),
        {"ix_workspaces_not_converged"},
    ),
}

PLACE = Position(NOW, WorkspaceId(str(OWNER)))
VIEWS = {
    "own": (ViewFilter(OWNER), "ix_workspaces_visible_owner"),
    "own, narrowed": (ViewFilter(OWNER, frozenset({Phase.ERROR}), "text"), "ix_workspaces_visible_owner"),
    "own, deleted": (ViewFilter(OWNER, deleted=True), "ix_workspaces_deleted_owner"),
    "all": (ViewFilter(), "ix_workspaces_visible"),
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


@pytest.mark.parametrize("after", [None, PLACE])
@pytest.mark.parametrize("name", VIEWS)
async def test_page_of_a_list_reads_only_its_index(
    full_database: Database, name: str, after: Position | None
) -> None:
    filter_, expected = VIEWS[name]
    plan = await explain(full_database, select_page(filter_, after, 50))
    assert indexes(plan, "workspaces") == {expected}
    # Other archives of a workspace are loaded only in some errors.
    assert indexes(plan, "archives") == {"pk_archives", "ix_archives_workspace_id"}
    # The few users may be scanned; the large tables are not, and no list is sorted for a page.
    assert scanned(plan) <= {"users"}


@pytest.mark.parametrize("name", ["own", "all"])
async def test_page_of_a_list_stops_scanning_when_it_is_full(full_database: Database, name: str) -> None:
    plan = await explain(full_database, select_page(VIEWS[name][0], None, 50), analyze=True)
    [scan] = [node for node in nodes(plan) if node.get("Relation Name") == "workspaces"]
    assert (scan["Node Type"], scan["Actual Rows"]) == ("Index Scan", 50)


async def test_errors_are_listed_from_their_index(full_database: Database) -> None:
    plan = await explain(full_database, select_needing_person(100))
    assert indexes(plan, "workspaces") == {"ix_workspaces_error", "pk_workspaces"}
    assert scanned(plan) <= {"users"}


@pytest.mark.parametrize("before", [None, 40_000])
async def test_history_reads_the_page_and_not_the_rest(full_database: Database, before: int | None) -> None:
    async with full_database.transaction() as session:
        found = await session.scalars(text("SELECT workspace_id FROM workspace_events WHERE id = 40000"))
        workspace_id = WorkspaceId(str(found.one()))
    for query, most in (
        (select_operation_events(workspace_id, before, 10), 2 * 40),
        (select_events(workspace_id, before, 10), 10),
    ):
        plan = await explain(full_database, query, analyze=True)
        scans = [node for node in nodes(plan) if node.get("Relation Name") == "workspace_events"]
        assert scanned(plan) == set()
        assert sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in scans) <= most


async def test_one_operation_is_read_without_the_others(full_database: Database) -> None:
    claims = "SELECT workspace_id, id FROM workspace_events WHERE kind = 'operation_claimed' AND id > 40000"
    async with full_database.transaction() as session:
        found = (await session.execute(text(f"{claims} ORDER BY id LIMIT 1"))).one()
    plan = await explain(full_database, select_events_of(WorkspaceId(str(found[0])), found[1]), analyze=True)
    scans = [node for node in nodes(plan) if node.get("Relation Name") == "workspace_events"]
    assert scanned(plan) == set()
    assert sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in scans) <= 2 * 5


async def test_usage_is_read_for_one_workspace_only(full_database: Database) -> None:
    async with full_database.transaction() as session:
        now = (await session.scalars(text("SELECT now()"))).one()
        used = (await session.scalars(text("SELECT workspace_id FROM workspace_usage LIMIT 1"))).one()
    day = await explain(full_database, select_usage(WorkspaceId(str(used)), now - timedelta(days=1)))
    assert indexes(day, "workspace_usage") == {"pk_workspace_usage"}
    assert scanned(day) == set()


async def test_connections_are_read_for_one_workspace_only(full_database: Database) -> None:
    async with full_database.transaction() as session:
        now = (await session.scalars(text("SELECT now()"))).one()
        used = (await session.scalars(text("SELECT workspace_id FROM egress_log LIMIT 1"))).one()
    day = await explain(full_database, select_log(WorkspaceId(str(used)), now - timedelta(days=1), 500))
    assert indexes(day, "egress_log") == {"pk_egress_log"}
    assert scanned(day) == set()


async def test_connections_of_all_workspaces_are_read_from_the_newest_hour_on(
    full_database: Database,
) -> None:
    first = await explain(full_database, select_egress(EgressFilter(), None, 100))
    async with full_database.transaction() as session:
        *_, last = await list_egress(session, EgressFilter(), after=None, limit=100)
    for plan in (first, await explain(full_database, select_egress(EgressFilter(), last, 100))):
        assert indexes(plan, "egress_log") == {"ix_egress_log_hour"}
        assert "egress_log" not in scanned(plan)


OLD_ROWS = {
    "workspaces": (retention.DELETE_WORKSPACES, "ix_workspaces_deleted_at"),
    "uncollected archives": (retention.SELECT_UNCOLLECTED, "ix_workspaces_deleted_at"),
    "archives": (retention.DELETE_ARCHIVES, "ix_archives_deleted_at"),
    "events": (retention.DELETE_EVENTS, "ix_workspace_events_at"),
    "sessions": (retention.DELETE_SESSIONS, "ix_sessions_expires_at"),
    "tokens": (retention.DELETE_TOKENS, "ix_api_tokens_ended_at"),
    "usage": (retention.DELETE_USAGE, "ix_workspace_usage_bucket"),
    "egress_log": (retention.DELETE_EGRESS_LOG, "ix_egress_log_hour"),
}


@pytest.mark.parametrize("kind", OLD_ROWS)
async def test_old_rows_are_found_by_an_index_on_their_age(full_database: Database, kind: str) -> None:
    statement, index = OLD_ROWS[kind]
    async with full_database.transaction() as session:
        now = (await session.scalars(text("SELECT now()"))).one()
    plan = await explain(full_database, retention.bound(statement, now - timedelta(days=5), 100))
    assert index in {node["Index Name"] for node in nodes(plan) if "Index Name" in node}
    assert scanned(plan) == set()


async def test_counting_reads_only_new_events(full_database: Database) -> None:
    async with full_database.transaction() as session:
        last_id = await last_event_id(session)
    plan = await explain(full_database, select_counts(last_id - 10, NOW), analyze=True)
    scans = [node for node in nodes(plan) if node.get("Relation Name") == "workspace_events"]
    assert scanned(plan) == set()
    assert sum(node["Actual Rows"] for node in scans) <= 2 * 10


async def test_expired_idempotency_keys_are_found_by_an_index(full_database: Database) -> None:
    async with full_database.transaction() as session:
        now = (await session.scalars(text("SELECT now()"))).one()
    plan = await explain(full_database, delete_expired(now - KEY_LIFETIME, 100))
    assert "ix_idempotency_keys_created_at" in indexes(plan, "idempotency_keys")
    assert scanned(plan) == set()


async def test_converged_workspaces_are_not_read_to_find_unfinished_ones(database: Database) -> None:
    """The hard case for PostgreSQL's planner: all workspaces have converged."""
    async with database.transaction() as session:
        await session.execute(text(USERS))
        await session.execute(text(WORKSPACES.replace("(1, 100000)", "(7651, 17650)")))
        await session.execute(text("ANALYZE workspaces"))
    plan = await explain(database, select_not_converged(1000, now=NOW, silent=list(Resource)))
    assert not [node for node in nodes(plan) if node["Node Type"] == "Seq Scan"]


def indexes(plan: dict[str, Any], table: str) -> set[str]:
    """Return the indexes that the plan uses for the table; a bitmap index scan does not name its table."""
    named = {node["Index Name"] for node in nodes(plan) if "Index Name" in node}
    return {name for name in named if name.split("_")[1] == table.partition("_")[0]}


def scanned(plan: dict[str, Any]) -> set[str]:
    """Return the tables that are scanned sequentially."""
    return {node["Relation Name"] for node in nodes(plan) if node["Node Type"] == "Seq Scan"}


async def test_recovered_workspaces_are_not_read_to_find_recovering_ones(database: Database) -> None:
    async with database.transaction() as session:
        await session.execute(text(USERS))
        await session.execute(text(WORKSPACES.replace("(1, 100000)", "(7651, 17650)")))
        await session.execute(text(RECOVERED_ONCE))
        await session.execute(text("ANALYZE workspaces"))
    plan = await explain(database, select_not_converged(1000, now=NOW, silent=list(Resource)))
    assert not [node for node in nodes(plan) if node["Node Type"] == "Seq Scan"]


async def explain(database: Database, query: Executable, *, analyze: bool = False) -> dict[str, Any]:
    sql = query.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True})  # type: ignore[attr-defined, no-untyped-call]
    options = "FORMAT JSON, ANALYZE" if analyze else "FORMAT JSON"
    async with database.transaction() as session:
        [plan] = (await session.scalars(text(f"EXPLAIN ({options}) {sql}".replace(":", r"\:")))).one()
    found: dict[str, Any] = plan["Plan"]
    return found
