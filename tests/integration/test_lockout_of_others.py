"""Wrong passwords slow down whoever enters them, and cannot be used to lock others out."""

import pytest

from codehub.db.session import Database
from codehub.domain.lockout import ACCOUNT, ADDRESS, FAILURES_BEFORE_LOCK
from codehub.services.errors import LockedOut, SignInRefused
from codehub.services.identity import SignInClient
from tests.identities import HERE, WRONG, add, enter

STRANGER = SignInClient("198.51.100.9")
NEW_PLACE = SignInClient("203.0.113.5")


async def guess(database: Database, client: SignInClient, times: int, username: str = "ann") -> int:
    """Try wrong passwords, all at the same time of day; return how many of them were checked."""
    checked = 0
    for _ in range(times):
        try:
            await enter(database, username, WRONG, client=client)
        except LockedOut:
            continue
        except SignInRefused:
            checked += 1
    return checked


async def guess_from_many(database: Database, addresses: int, times: int) -> int:
    clients = [SignInClient(f"198.18.0.{number}") for number in range(addresses)]
    return sum([await guess(database, client, times) for client in clients])


async def test_a_stranger_who_fails_does_not_lock_the_owner_out(database: Database) -> None:
    await add(database)
    assert await guess(database, STRANGER, 50) == FAILURES_BEFORE_LOCK
    # Not even at a place that the account does not know.
    await enter(database, client=NEW_PLACE)
    with pytest.raises(LockedOut):
        await enter(database, client=STRANGER)


async def test_guessing_from_many_addresses_is_slowed_down_but_locks_out_no_known_place(
    database: Database,
) -> None:
    await add(database)
    device = (await enter(database)).device
    assert await guess_from_many(database, 30, 10) == ACCOUNT.free
    with pytest.raises(LockedOut):
        await enter(database, client=NEW_PLACE)
    await enter(database, client=HERE)
    await enter(database, client=SignInClient(NEW_PLACE.address, device=device))


async def test_a_neighbor_at_the_same_address_does_not_lock_a_known_device_out(database: Database) -> None:
    await add(database)
    device = (await enter(database)).device
    await guess(database, HERE, 10)
    with pytest.raises(LockedOut):
        await enter(database, client=HERE)
    await enter(database, client=SignInClient(HERE.address, device=device))


async def test_an_address_cannot_try_one_password_on_every_account(database: Database) -> None:
    for number in range(ADDRESS.free):
        assert await guess(database, STRANGER, 1, f"user-{number}") == 1
    assert await guess(database, STRANGER, 5, "one-more") == 0


async def test_a_stolen_device_cookie_locks_only_itself_out(database: Database) -> None:
    await add(database)
    stolen, other = (await enter(database)).device, (await enter(database)).device
    thief = SignInClient(STRANGER.address, device=stolen)
    assert await guess(database, thief, 20) == FAILURES_BEFORE_LOCK
    await enter(database, client=SignInClient(NEW_PLACE.address, device=other))
    await enter(database, client=NEW_PLACE)


async def test_a_device_is_known_only_to_the_account_that_signed_in_from_it(database: Database) -> None:
    await add(database)
    await add(database, "bob")
    device = (await enter(database, "bob")).device
    assert await guess(database, SignInClient(STRANGER.address, device=device), 20) == FAILURES_BEFORE_LOCK
    assert await guess(database, STRANGER, 1) == 0


async def test_a_planted_device_cookie_is_replaced(database: Database) -> None:
    await add(database)
    first = await enter(database, client=SignInClient(HERE.address, device="planted"))
    assert first.device not in {None, "planted"}
    again = await enter(database, client=SignInClient(HERE.address, device=first.device))
    assert again.device == first.device
