"""Views of workspaces and archives, alone and in pages."""

from dataclasses import fields, replace
from datetime import timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from sqlalchemy import update

from codehub.db.archive_views import ArchiveView, count_collected, list_archives
from codehub.db.archives import mark_collected, mark_orphans, mark_verified, record_archive
from codehub.db.models import Workspace
from codehub.db.session import Database
from codehub.db.views import (
    ViewFilter,
    ViewPage,
    WorkspaceView,
    count_by_phase,
    list_needing_person,
    list_views,
    list_views_by_id,
    load_any_view,
    load_view,
)
from codehub.db.workspaces import METADATA_FIELDS
from codehub.domain.conditions import Condition, Conditions, Status, WorkspaceId, conditions_to_json
from codehub.domain.limits import RunningLimits
from codehub.domain.naming import archive_key
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.deletion import undelete_workspace
from codehub.services.requests import RequestContext
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id

DELETED = {"phase": "DELETED", "desired_state": "DELETED", "deleted_at": NOW}
DELETING = {**DELETED, "phase": "DELETING"}
BROKEN = {"phase": "ERROR", "error_reason": "Timeout", "error_message": "Late."}
CONDITIONS = Conditions(volume_ready=Condition(Status.TRUE, "Complete", "It is there.", NOW))


def later(seconds: int) -> dict[str, object]:
    return {"created_at": NOW + timedelta(seconds=seconds)}


async def add(database: Database, **columns: object) -> WorkspaceId:
    async with database.transaction() as session:
        return await add_workspace(session, await add_user(session), **columns)


async def view(database: Database, workspace_id: WorkspaceId) -> WorkspaceView | None:
    async with database.transaction() as session:
        return await load_view(session, workspace_id)


async def ids(database: Database, filter_: ViewFilter) -> list[WorkspaceId]:
    async with database.transaction() as session:
        page = await list_views(session, filter_, after=None, limit=100)
    return [item.workspace_id for item in page.items]


async def pages(database: Database, filter_: ViewFilter, limit: int) -> list[ViewPage]:
    found: list[ViewPage] = []
    while not found or found[-1].next:
        async with database.transaction() as session:
            after = found[-1].next if found else None
            found.append(await list_views(session, filter_, after=after, limit=limit))
    return found


async def test_view_has_every_visible_column(database: Database) -> None:
    workspace_id, operation_id = new_workspace_id(), str(uuid4())
    key = archive_key(workspace_id, operation_id)
    async with database.transaction() as session:
        owner = await add_user(session, "ann")
        await add_workspace(
            session,
            owner,
            id=UUID(workspace_id),
            name="notes",
            description="A description.",
            memo="A memo.",
            conditions=conditions_to_json(CONDITIONS),
            observed_at=NOW + timedelta(seconds=1),
            phase="STANDBY",
            operation="STARTING",
            op_started_at=NOW + timedelta(seconds=2),
            desired_state="RUNNING",
            archive_key=key,
            error_reason="Unreachable",
            error_message="Docker does not respond.",
            error_count=2,
            standby_ttl_seconds=60,
            archive_ttl_seconds=120,
            last_access_at=NOW + timedelta(seconds=3),
            created_at=NOW + timedelta(seconds=4),
            updated_at=NOW + timedelta(seconds=5),
        )
        archived_at = NOW + timedelta(seconds=6)
        await record_archive(session, key, size_bytes=42, sha256="aa", now=archived_at)
    assert await view(database, workspace_id) == WorkspaceView(
        workspace_id=workspace_id,
        owner_user_id=owner,
        owner_username="ann",
        name="notes",
        description="A description.",
        memo="A memo.",
        image_ref="image",
        instance_backend="local",
        storage_backend="local-dir",
        conditions=CONDITIONS,
        observed_at=NOW + timedelta(seconds=1),
        phase=Phase.STANDBY,
        phase_changed_at=NOW,
        operation=Operation.STARTING,
        op_started_at=NOW + timedelta(seconds=2),
        desired_state=DesiredState.RUNNING,
        purge=False,
        archive_key=key,
        archive_size_bytes=42,
        archived_at=archived_at,
        archive_verified_at=None,
        other_archives=(),
        error_reason=ErrorReason.UNREACHABLE,
        error_message="Docker does not respond.",
        error_count=2,
        recovering=False,
        waiting_for=(),
        waiting_since=None,
        standby_ttl_seconds=60,
        archive_ttl_seconds=120,
        last_access_at=NOW + timedelta(seconds=3),
        created_at=NOW + timedelta(seconds=4),
        updated_at=NOW + timedelta(seconds=5),
        deleted_at=None,
        version=1,
    )


async def test_unknown_values_are_none(database: Database) -> None:
    seen = await view(database, await add(database, archive_key="not recorded"))
    assert seen is not None
    empty = {field.name for field in fields(seen) if getattr(seen, field.name) is None}
    assert empty == (set(METADATA_FIELDS) - {"name"}) | {
        "observed_at",
        "op_started_at",
        "archive_size_bytes",
        "archive_verified_at",
        "archived_at",
        "error_reason",
        "error_message",
        "waiting_since",
        "last_access_at",
        "deleted_at",
        "origin_number",
        "disk_used_bytes",
        "disk_measured_at",
        "disk_complete",
        "disk_limit_bytes",
    }
    assert seen.conditions == Conditions()


async def test_workspace_is_visible_until_it_is_deleted(database: Database) -> None:
    deleting, deleted = await add(database, **DELETING), await add(database, **DELETED)
    seen = await view(database, deleting)
    assert seen is not None
    assert (seen.phase, seen.deleted_at) == (Phase.DELETING, NOW)
    assert await view(database, deleted) is None
    assert await view(database, new_workspace_id()) is None


async def test_workspace_is_visible_again_as_soon_as_it_is_undeleted(database: Database) -> None:
    undeleted = await add(database, **DELETED, archive_key="archive")
    context = RequestContext("ann", RunningLimits(), NOW)
    await undelete_workspace(database, undeleted, context=context)
    seen = await view(database, undeleted)
    assert seen is not None
    assert (seen.phase, seen.desired_state, seen.deleted_at) == (
        Phase.ARCHIVED,
        DesiredState.ARCHIVED,
        None,
    )


async def test_deleted_workspace_can_still_be_loaded_by_its_id(database: Database) -> None:
    deleted = await add(database, **DELETED)
    async with database.transaction() as session:
        found = await load_any_view(session, deleted)
        assert await load_any_view(session, new_workspace_id()) is None
    assert found is not None
    assert (found.workspace_id, found.is_visible) == (deleted, False)


async def test_recovery_shows_until_it_is_handled(database: Database) -> None:
    workspace_id = await add(database, **BROKEN, recover_choice="retry", recover_requested_at=NOW)
    requested = await view(database, workspace_id)
    async with database.transaction() as session:
        await session.execute(update(Workspace).values(recover_handled_at=NOW))
    handled = await view(database, workspace_id)
    assert requested is not None
    assert handled is not None
    assert (requested.recovering, handled.recovering) == (True, False)
    assert handled == replace(requested, recovering=False, version=requested.version + 1)


async def test_pages_list_each_workspace_once_newest_first(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        # Three were created at the same time: the id decides, also across pages.
        moments = [1, 2, 3, 3, 3, 4, 5]
        for moment in moments:
            await add_workspace(session, owner, **later(moment))
    found = await pages(database, ViewFilter(owner), limit=2)
    items = [item for page in found for item in page.items]
    assert [len(page.items) for page in found] == [2, 2, 2, 1]
    assert len({item.workspace_id for item in items}) == len(moments)
    places = [(item.created_at, UUID(item.workspace_id)) for item in items]
    assert all(newer > older for newer, older in pairwise(places))


async def test_full_last_page_has_no_next_page(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        for moment in range(4):
            await add_workspace(session, owner, **later(moment))
    assert [len(page.items) for page in await pages(database, ViewFilter(owner), limit=2)] == [2, 2]


async def test_new_workspace_does_not_shift_the_next_pages(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        oldest, newest = [await add_workspace(session, owner, **later(moment)) for moment in (1, 2)]
        first = await list_views(session, ViewFilter(owner), after=None, limit=1)
        await add_workspace(session, owner, **later(3))
        second = await list_views(session, ViewFilter(owner), after=first.next, limit=1)
    assert [item.workspace_id for item in (*first.items, *second.items)] == [newest, oldest]


async def test_only_workspaces_of_the_owner_are_listed(database: Database) -> None:
    async with database.transaction() as session:
        ann, ben = await add_user(session, "ann"), await add_user(session, "ben")
        of_ann = await add_workspace(session, ann, **later(1))
        of_ben = await add_workspace(session, ben, **later(2))
        all_items = (await list_views(session, ViewFilter(), after=None, limit=9)).items
    assert await ids(database, ViewFilter(ann)) == [of_ann]
    assert [(item.workspace_id, item.owner_username) for item in all_items] == [
        (of_ben, "ben"),
        (of_ann, "ann"),
    ]


async def test_deleted_workspaces_are_listed_separately(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        deleting = await add_workspace(session, owner, **DELETING)
        deleted = [await add_workspace(session, owner, **DELETED, **later(moment)) for moment in (2, 1)]
    for whose in (owner, None):
        assert await ids(database, ViewFilter(whose)) == [deleting]
        assert await ids(database, ViewFilter(whose, deleted=True)) == deleted


async def test_list_can_be_filtered_by_phases(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        broken = await add_workspace(session, owner, **BROKEN, **later(2))
        pending = await add_workspace(session, owner, **later(1))
        await add_workspace(session, owner, phase="STANDBY", **later(0))
    assert await ids(database, ViewFilter(owner, frozenset({Phase.ERROR}))) == [broken]
    assert await ids(database, ViewFilter(owner, frozenset({Phase.ERROR, Phase.PENDING}))) == [
        broken,
        pending,
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("NOTES", {"my notes"}),
        ("thesis", {"my notes", "Thesis"}),
        ("100%", {"100% done"}),
        ("%", {"100% done"}),
        ("_", {"a_b"}),
        ("\\", {"back\\slash"}),
        ("/", {"either/or"}),
        ("'", set()),
    ],
)
async def test_list_is_searched_for_literal_text(database: Database, text: str, found: set[str]) -> None:
    descriptions = {"my notes": "for the thesis"}
    async with database.transaction() as session:
        owner = await add_user(session)
        for name in ("my notes", "Thesis", "100% done", "a_b", "axb", "back\\slash", "either/or"):
            await add_workspace(session, owner, name=name, description=descriptions.get(name))
        page = await list_views(session, ViewFilter(owner, text=text), after=None, limit=100)
    assert {item.name for item in page.items} == found


async def test_views_are_found_by_id_except_deleted_ones(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        older, newer = [await add_workspace(session, owner, **later(moment)) for moment in (1, 2)]
        deleted = await add_workspace(session, owner, **DELETED)
        found = await list_views_by_id(session, [older, deleted, newer, new_workspace_id()])
        assert await list_views_by_id(session, []) == []
    assert [item.workspace_id for item in found] == [newer, older]


async def test_every_phase_but_deleted_is_counted(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        for columns in ({}, {}, BROKEN, DELETING, DELETED):
            await add_workspace(session, owner, **columns)
        assert await count_by_phase(session) == {
            Phase.PENDING: 2,
            Phase.ARCHIVED: 0,
            Phase.STANDBY: 0,
            Phase.RUNNING: 0,
            Phase.ERROR: 1,
            Phase.DELETING: 1,
        }


async def test_errors_are_listed_with_the_longest_waiting_first(database: Database) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        moments = [NOW - timedelta(hours=hours) for hours in (1, 3, 2)]
        for moment in moments:
            await add_workspace(session, owner, **BROKEN, phase_changed_at=moment)
        await add_workspace(session, owner)
        found = await list_needing_person(session, limit=2)
    assert [item.phase_changed_at for item in found] == [moments[1], moments[2]]


async def test_archives_are_listed_newest_first_with_their_state(database: Database) -> None:
    workspace_id = new_workspace_id()
    operation_ids = [str(uuid4()) for _ in range(3)]
    removed, orphan, current = (archive_key(workspace_id, each) for each in operation_ids)
    hour = timedelta(hours=1)
    async with database.transaction() as session:
        for age, key in ((3, removed), (2, orphan), (1, current)):
            await record_archive(session, key, size_bytes=age, sha256="aa", now=NOW - age * hour)
        await mark_verified(session, current, NOW)
        await mark_orphans(session, [removed, orphan], NOW)
        await mark_collected(session, removed, NOW + hour)
        # Archives of another workspace are not in the list.
        other = archive_key(new_workspace_id(), str(uuid4()))
        await record_archive(session, other, size_bytes=1, sha256="aa", now=NOW)
        await add_workspace(session, await add_user(session), id=UUID(workspace_id), archive_key=current)
        found = await list_archives(session, workspace_id)
        assert await count_collected(session) == 1
    assert found[0] == ArchiveView(
        key=current,
        archive_op_id=UUID(operation_ids[2]),
        size_bytes=1,
        sha256="aa",
        created_at=NOW - hour,
        verified_at=NOW,
        current=True,
        orphan_since=None,
        given_up_at=None,
        removed_at=None,
    )
    assert [(each.key, each.current, each.orphan_since, each.removed_at) for each in found[1:]] == [
        (orphan, False, NOW, None),
        (removed, False, NOW, NOW + hour),
    ]


async def test_archives_outlive_the_row_of_their_workspace(database: Database) -> None:
    workspace_id = new_workspace_id()
    async with database.transaction() as session:
        key = archive_key(workspace_id, str(uuid4()))
        await record_archive(session, key, size_bytes=1, sha256="aa", now=NOW)
        assert [each.current for each in await list_archives(session, workspace_id)] == [False]
