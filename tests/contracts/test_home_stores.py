"""The contract of `HomeStore`, for every implementation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from testkit.rows import new_workspace_id
from tests.contracts.home_store_harness import HomeStoreHarness, OpenStore, open_harness


@pytest.fixture(params=["fake", "local", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def open_store(kind: str, tmp_path: Path) -> OpenStore:
    """Return what opens a store by its name."""

    async def open_one(name: str, stack: AsyncExitStack) -> HomeStoreHarness:
        return await open_harness(kind, tmp_path / name, stack)

    return open_one


@pytest.fixture
async def harness(open_store: OpenStore) -> AsyncIterator[HomeStoreHarness]:
    async with AsyncExitStack() as stack:
        yield await open_store("one", stack)


async def test_a_store_that_was_never_set_up_has_no_identity(harness: HomeStoreHarness) -> None:
    assert await harness.store.read_identity() is None


async def test_an_identity_stays_once_it_was_created(harness: HomeStoreHarness) -> None:
    created = await harness.store.create_identity()
    assert created
    assert await harness.store.read_identity() == created
    assert await harness.store.create_identity() == created


async def test_several_callers_at_once_create_one_identity(harness: HomeStoreHarness) -> None:
    created = await asyncio.gather(*(harness.store.create_identity() for _ in range(8)))
    assert set(created) == {await harness.store.read_identity()}


async def test_two_stores_have_different_identities(harness: HomeStoreHarness, open_store: OpenStore) -> None:
    async with AsyncExitStack() as stack:
        other = await open_store("other", stack)
        assert await other.store.create_identity() != await harness.store.create_identity()


async def test_a_store_can_hold_homes_once_it_has_an_identity(harness: HomeStoreHarness) -> None:
    await harness.store.create_identity()
    assert await harness.volumes.list_all() == []
    workspace_id = new_workspace_id()
    await harness.volumes.provision(workspace_id)
    assert await harness.volumes.list_all() == [workspace_id]


async def test_a_store_that_was_replaced_with_an_empty_one_has_no_identity(harness: HomeStoreHarness) -> None:
    created = await harness.store.create_identity()
    harness.replace_store()
    assert await harness.store.read_identity() is None
    assert await harness.store.create_identity() != created


async def test_an_outage_is_not_an_absence(harness: HomeStoreHarness) -> None:
    await harness.store.create_identity()
    harness.make_unreachable()
    for call in (harness.store.read_identity(), harness.store.create_identity()):
        with pytest.raises(Transient) as caught:
            await call
        assert caught.value.reason is ErrorReason.UNREACHABLE


async def test_the_location_is_readable_for_people(harness: HomeStoreHarness) -> None:
    assert harness.store.location
