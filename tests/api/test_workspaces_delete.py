"""Deletions over the API, and how they are taken back."""

from typing import Any
from uuid import uuid4

from sqlalchemy import text

from codehub.db.models import Archive
from codehub.domain.states import Phase
from tests.api.behind import (
    LONG_AGO,
    fail,
    mark_deleted,
    set_columns,
)
from tests.api.bench import ApiBench, Person
from tests.api.workspace_requests import bench, error_of, listed, settled, world
from tests.fake_world import FakeWorld
from tests.waiting import until

__all__ = ["bench", "world"]

# As if a worker had carried out the deletion before the API looked at the row again.
SWEEP_THAT_IS_QUICKER = (
    """CREATE FUNCTION be_quicker() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN NEW.phase := 'DELETED'; RETURN NEW; END $$""",
    """CREATE TRIGGER be_quicker BEFORE UPDATE ON workspaces FOR EACH ROW
       WHEN (NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION be_quicker()""",
)


async def gone(person: Person, workspace_id: str) -> None:
    async def answers_404() -> bool:
        return (await person.client.get(f"{person.workspaces}/{workspace_id}")).status_code == 404

    await until(answers_404, f"{workspace_id} is gone")


async def test_a_deleted_workspace_is_gone_and_comes_back(bench: ApiBench, world: FakeWorld) -> None:
    ada = await bench.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    await settled(bench, ada, created["id"])
    answer = await ada.client.delete(path)
    assert answer.status_code == 202
    deletion = answer.json()
    assert deletion["purge"] is False
    assert "undelete" in deletion["message"]
    assert deletion["workspace"]["desired_state"] == "DELETED"
    assert deletion["workspace"]["undelete_until"] > deletion["workspace"]["deleted_at"]
    await gone(ada, created["id"])
    for request in (
        ada.client.get(path),
        ada.client.patch(path, json={"name": "new"}),
        ada.client.delete(path),
        ada.client.post(f"{path}/recover", json={}),
        ada.client.get(f"{path}/operations"),
    ):
        await error_of(await request, 404, "WORKSPACE_NOT_FOUND")
    assert await listed(ada, deleted="true") == [created["id"]]
    answer = await ada.client.post(f"{path}/undelete")
    assert answer.status_code == 202, answer.text
    assert (answer.json()["desired_state"], answer.json()["deleted_at"]) == ("ARCHIVED", None)
    assert (await settled_after_undelete(bench, ada, created["id"]))["phase"] == "ARCHIVED"


async def settled_after_undelete(bench: ApiBench, person: Person, workspace_id: str) -> dict[str, Any]:
    async def is_back() -> bool:
        return (await person.client.get(f"{person.workspaces}/{workspace_id}")).status_code == 200

    await until(is_back, f"{workspace_id} is back")
    return await settled(bench, person, workspace_id)


async def test_a_deletion_that_is_under_way_can_be_taken_back(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    await ada.client.delete(path)
    await error_of(await ada.client.patch(path, json={"desired_state": "RUNNING"}), 409, "INVALID_STATE")
    assert (await ada.client.patch(path, json={"name": "new"})).status_code == 200
    answer = await ada.client.post(f"{path}/undelete")
    assert (answer.status_code, answer.json()["desired_state"]) == (202, "ARCHIVED")
    await error_of(await ada.client.post(f"{path}/undelete"), 409, "INVALID_STATE")


async def test_whoever_purges_is_told_that_it_is_for_good(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    deletion = (await ada.client.delete(path, params={"purge": "true"})).json()
    assert deletion["purge"] is True
    assert "cannot be taken back" in deletion["message"]
    assert deletion["workspace"]["undelete_until"] is None
    problem = await error_of(await ada.client.post(f"{path}/undelete"), 409, "INVALID_STATE")
    assert "last archive" in problem["message"]


async def test_a_deletion_that_is_over_at_once_is_answered_like_any_other(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    async with bench.context.database.transaction() as session:
        for statement in SWEEP_THAT_IS_QUICKER:
            await session.execute(text(statement))
    answer = await ada.client.delete(f"{ada.workspaces}/{created['id']}", params={"purge": "true"})
    assert (answer.status_code, answer.json()["workspace"]["phase"]) == (202, "DELETED")


async def test_deleting_a_broken_workspace_is_a_purge_and_says_so(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    await fail(bench.context.database, created["id"])
    deletion = (await ada.client.delete(f"{ada.workspaces}/{created['id']}")).json()
    assert deletion["purge"] is True
    assert "cannot be taken back" in deletion["message"]


async def test_a_workspace_whose_archive_was_collected_does_not_come_back(bench: ApiBench) -> None:
    ada = await bench.person()
    workspace_id, key = (await ada.create())["id"], "archives/gone/home.tar.zst"
    async with bench.context.database.transaction() as session:
        session.add(Archive(key=key, workspace_id=workspace_id, archive_op_id=uuid4(), deleted_at=LONG_AGO))
    await mark_deleted(bench.context.database, workspace_id, Phase.DELETED)
    await set_columns(bench.context.database, workspace_id, archive_key=key)
    answer = await ada.client.post(f"{ada.workspaces}/{workspace_id}/undelete")
    problem = await error_of(answer, 409, "INVALID_STATE")
    assert "removed" in problem["message"]
