"""Guarded providers fail while the home store is not the recorded one."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from codehub.db.session import Database
from codehub.domain.conditions import ContainerFact, VolumeFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import UNRECORDED, InstanceRequest
from codehub.services.guarded_providers import GuardedInstances, GuardedStorageJobs, GuardedVolumes, HomeGuard
from codehub.services.home_store import Homes, adopt_home_store, ensure_home_store
from testkit.fakes import IMAGE
from testkit.rows import new_workspace_id
from tests.contracts.home_store_harness import HomeStoreHarness, open_harness

KEY = "archives/x/y/home.tar.zst"


class Guarded:
    """Return the providers of a harness with the guard that all processes use."""

    def __init__(self, harness: HomeStoreHarness, database: Database) -> None:
        guard = HomeGuard(database, "test", harness.store)
        self.homes = Homes("test", harness.store, harness.volumes)
        self.instances = GuardedInstances(harness.instances, guard)
        self.volumes = GuardedVolumes(harness.volumes, guard)
        self.jobs = GuardedStorageJobs(harness.jobs, guard)

    def calls(self, workspace_id: WorkspaceId) -> list[Awaitable[object]]:
        """Return every call that observes or changes homes and instances."""
        log = self.instances.read_log(workspace_id, tail=1, follow=False)
        return [
            self.instances.observe(workspace_id),
            self.instances.list_all(),
            self.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None),
            self.instances.stop(workspace_id),
            self.instances.find_upstream(workspace_id),
            self.instances.find_port(workspace_id, 3000),
            self.instances.list_ports(workspace_id),
            anext(log, None),
            self.volumes.observe(workspace_id),
            self.volumes.list_all(),
            self.volumes.provision(workspace_id),
            self.volumes.remove(workspace_id),
            self.volumes.set_aside(workspace_id),
            self.jobs.archive(workspace_id, KEY, lambda _: None),
            self.jobs.restore(workspace_id, KEY, lambda _: None, UNRECORDED),
            self.jobs.create_empty(workspace_id, KEY, lambda _: None),
            self.jobs.remove_abandoned(),
        ]


@pytest.fixture(params=["fake", "local", "docker"])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[HomeStoreHarness]:
    async with AsyncExitStack() as stack:
        yield await open_harness(request.param, tmp_path / "homes", stack)


@pytest.fixture
def guarded(harness: HomeStoreHarness, database: Database) -> Guarded:
    return Guarded(harness, database)


async def no_call_is_answered(guarded: Guarded, workspace_id: WorkspaceId, words: str) -> None:
    for call in guarded.calls(workspace_id):
        with pytest.raises(Transient, match=words) as caught:
            await call
        assert caught.value.reason is ErrorReason.UNREACHABLE


async def test_nothing_changes_homes_before_their_store_is_recorded(
    harness: HomeStoreHarness, guarded: Guarded
) -> None:
    await harness.store.create_identity()
    await no_call_is_answered(guarded, new_workspace_id(), "not recorded yet")
    assert await harness.volumes.list_all() == []


async def test_the_recorded_store_works_as_without_a_guard(guarded: Guarded, database: Database) -> None:
    await ensure_home_store(database, guarded.homes)
    workspace_id = new_workspace_id()
    await guarded.volumes.provision(workspace_id)
    assert await guarded.volumes.observe(workspace_id) is VolumeFact.PRESENT
    assert await guarded.volumes.list_all() == [workspace_id]
    assert await guarded.instances.observe(workspace_id) is ContainerFact.ABSENT
    assert await guarded.instances.list_all() == {}
    assert await guarded.instances.find_upstream(workspace_id) is None
    assert await guarded.instances.find_port(workspace_id, 3000) is None
    assert list(await guarded.instances.list_ports(workspace_id)) == []
    await guarded.volumes.remove(workspace_id)
    assert await guarded.volumes.observe(workspace_id) is VolumeFact.ABSENT


async def test_a_store_that_was_replaced_with_an_empty_one_is_not_judged(
    harness: HomeStoreHarness, guarded: Guarded, database: Database
) -> None:
    await ensure_home_store(database, guarded.homes)
    workspace_id = new_workspace_id()
    await guarded.volumes.provision(workspace_id)
    harness.replace_store()
    for call in guarded.calls(workspace_id):
        with pytest.raises(Transient) as caught:
            await call
        assert caught.value.reason is ErrorReason.UNREACHABLE


async def test_another_store_in_its_place_is_not_judged_until_it_is_adopted(
    harness: HomeStoreHarness, guarded: Guarded, database: Database
) -> None:
    await ensure_home_store(database, guarded.homes)
    workspace_id = new_workspace_id()
    await guarded.volumes.provision(workspace_id)
    harness.replace_store()
    await harness.store.create_identity()
    await no_call_is_answered(guarded, workspace_id, "is a different store")
    assert await harness.volumes.list_all() == []
    await adopt_home_store(database, guarded.homes, datetime.now(UTC))
    assert await guarded.volumes.observe(workspace_id) is VolumeFact.ABSENT


async def test_a_store_that_is_no_longer_the_recorded_one_is_not_changed(
    harness: HomeStoreHarness, guarded: Guarded, database: Database, tmp_path: Path
) -> None:
    await ensure_home_store(database, guarded.homes)
    workspace_id = new_workspace_id()
    await guarded.volumes.provision(workspace_id)
    async with AsyncExitStack() as stack:
        other = await open_harness("local", tmp_path / "other", stack)
        await adopt_home_store(database, Homes("local", other.store, other.volumes), datetime.now(UTC))
    for change in (
        guarded.volumes.remove(workspace_id),
        guarded.jobs.archive(workspace_id, KEY, lambda _: None),
    ):
        with pytest.raises(Transient, match="is a different store"):
            await change
    assert await harness.volumes.list_all() == [workspace_id]
