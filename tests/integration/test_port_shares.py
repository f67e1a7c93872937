"""Ports are shared as administrators allow; each change is stored, counted and recorded."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import pytest

from codehub.db.audit_log import EntryFilter, list_entries
from codehub.db.session import Database
from codehub.db.views import WorkspaceView, load_view
from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import Audience, PortShare, Sharing, SharingRules
from codehub.services.audit import Actor
from codehub.services.errors import PortShareRefused, WorkspaceNotFound
from codehub.services.port_shares import share_port, unshare_port
from testkit.rows import NOW, add_user, add_workspace, new_workspace_id

HOUR = timedelta(hours=1)
ANYTHING = SharingRules(Sharing.PUBLIC)
ADMIN = Actor("admin", uuid4())


@dataclass
class Shared:
    """A workspace, its owner, and what they do with its ports."""

    database: Database
    workspace_id: WorkspaceId
    owner: Actor

    async def share(
        self,
        port: int = 3000,
        audience: Audience = Audience.USERS,
        lifetime: timedelta | None = HOUR,
        by: Actor | None = None,
        rules: SharingRules = ANYTHING,
    ) -> None:
        await share_port(
            self.database,
            self.workspace_id,
            port,
            audience,
            lifetime,
            rules=rules,
            now=NOW,
            by=by or self.owner,
        )

    async def unshare(self, port: int = 3000, by: Actor | None = None) -> None:
        await unshare_port(self.database, self.workspace_id, port, now=NOW, by=by or self.owner)

    async def view(self) -> WorkspaceView:
        async with self.database.transaction() as session:
            view = await load_view(session, self.workspace_id)
        assert view is not None
        return view

    async def recorded(self) -> list[tuple[str, str, object]]:
        async with self.database.transaction() as session:
            entries = await list_entries(session, EntryFilter(), before=None, limit=100)
        return [(each.action, each.actor, each.detail) for each in reversed(entries)]


@pytest.fixture
async def shared(database: Database) -> Shared:
    async with database.transaction() as session:
        owner = await add_user(session, "ann")
        workspace_id = await add_workspace(session, owner)
    return Shared(database, workspace_id, Actor("ann", owner))


async def test_a_share_is_in_the_view_and_counts_as_a_change(shared: Shared) -> None:
    before = await shared.view()
    await shared.share(8000)
    await shared.share(3000, Audience.PUBLIC, lifetime=None)
    after = await shared.view()
    assert after.port_shares == {
        3000: PortShare(Audience.PUBLIC, NOW),
        8000: PortShare(Audience.USERS, NOW, NOW + HOUR),
    }
    assert (before.port_shares, after.version) == ({}, before.version + 2)


async def test_sharing_is_undone_once(shared: Shared) -> None:
    await shared.share(3000)
    await shared.share(8000)
    await shared.unshare(3000)
    after = await shared.view()
    assert list(after.port_shares) == [8000]
    await shared.unshare(3000)
    assert (await shared.view()).version == after.version


async def test_changes_are_in_the_audit_log_with_audience_and_expiry(shared: Shared) -> None:
    await shared.share(3000, Audience.PUBLIC)
    await shared.share(3000, Audience.USERS, lifetime=None)
    await shared.unshare(3000, by=ADMIN)
    await shared.unshare(3000)
    expiry = (NOW + HOUR).isoformat()
    assert await shared.recorded() == [
        ("port_share", "ann", {"port": 3000, "audience": "public", "expires_at": expiry}),
        ("port_share", "ann", {"port": 3000, "audience": "users", "expires_at": None}),
        ("port_unshare", "admin", {"port": 3000, "audience": "users"}),
    ]


@pytest.mark.parametrize(
    "attempt",
    [
        {"port": 0},
        {"port": 3128},
        {"rules": SharingRules(Sharing.NONE)},
        {"audience": Audience.PUBLIC, "rules": SharingRules(Sharing.USERS)},
        {"lifetime": None, "rules": SharingRules(Sharing.PUBLIC, HOUR)},
    ],
    ids=str,
)
async def test_what_is_refused_changes_nothing(shared: Shared, attempt: dict[str, object]) -> None:
    with pytest.raises(PortShareRefused):
        await shared.share(**attempt)  # type: ignore[arg-type]
    assert (await shared.view()).port_shares == {}
    assert await shared.recorded() == []


async def test_there_is_nothing_to_share_of_a_missing_workspace(shared: Shared) -> None:
    shared.workspace_id = new_workspace_id()
    with pytest.raises(WorkspaceNotFound):
        await shared.share()
    with pytest.raises(WorkspaceNotFound):
        await shared.unshare()
