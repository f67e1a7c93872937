"""Personal tokens: shown once, found by their hash, useless once revoked."""

import asyncio
import re
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, text

from codehub.db.models import ApiToken
from codehub.db.session import Database
from codehub.services import users
from codehub.services.credentials import MAX_TOKENS, CreatedToken, create_token, list_tokens, revoke_token
from codehub.services.errors import (
    CredentialNotFound,
    InvalidExpiry,
    InvalidTokenName,
    TooManyTokens,
    UserNotFound,
)
from codehub.services.identity import Credential, find_session, find_token
from testkit.rows import BY, NOW
from tests.identities import PASSWORD, add, enter

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


async def create(
    database: Database, user_id: UUID, name: str = "ci", days: int | None = None
) -> CreatedToken:
    expires_at = None if days is None else NOW + days * DAY
    return await create_token(database, user_id, name, expires_at=expires_at, by=BY, now=NOW)


async def used_at(database: Database) -> object:
    async with database.transaction() as session:
        return (await session.scalars(select(ApiToken.last_used_at))).one()


async def dump_database(database: Database) -> str:
    """Return all rows of all tables as text."""
    async with database.transaction() as session:
        tables = await session.scalars(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
        rows = [
            row
            for table in tables.all()
            for row in await session.scalars(text(f'SELECT t::text FROM "{table}" AS t'))  # noqa: S608
        ]
    return "\n".join(rows)


async def test_token_identifies_its_user(database: Database) -> None:
    ann = await add(database)
    created = await create(database, ann.id, days=1)
    caller = await find_token(database, created.token, now=NOW)
    assert caller is not None
    assert (caller.user_id, caller.username, caller.role) == (ann.id, "ann", "user")
    assert (caller.credential, caller.credential_id) == (Credential.TOKEN, created.view.id)
    assert (caller.expires_at, caller.is_admin) == (NOW + DAY, False)


async def test_token_is_recognizable_and_not_in_its_repr(database: Database) -> None:
    created = await create(database, (await add(database)).id)
    assert re.fullmatch(r"codehub_pat_[A-Za-z0-9_-]{43}", created.token)
    assert created.token not in repr(created)


async def test_no_table_holds_a_secret(database: Database) -> None:
    ann = await add(database)
    token, cookie = (await create(database, ann.id)).token, (await enter(database)).token
    content = await dump_database(database)
    assert str(ann.id) in content
    for secret in (token, token.removeprefix("codehub_pat_"), cookie, PASSWORD):
        assert secret not in content
        assert secret.encode().hex() not in content


async def test_token_and_cookie_cannot_be_used_for_each_other(database: Database) -> None:
    ann = await add(database)
    token, cookie = (await create(database, ann.id)).token, (await enter(database)).token
    assert await find_session(database, token, now=NOW) is None
    assert await find_token(database, cookie, now=NOW) is None
    assert await find_token(database, token.removeprefix("codehub_pat_"), now=NOW) is None


async def test_token_ends_when_it_expires(database: Database) -> None:
    ann = await add(database)
    token = (await create(database, ann.id, days=1)).token
    assert await find_token(database, token, now=NOW + DAY - SECOND) is not None
    assert await find_token(database, token, now=NOW + DAY) is None


async def test_token_without_expiry_lasts(database: Database) -> None:
    token = (await create(database, (await add(database)).id)).token
    assert await find_token(database, token, now=NOW + 10_000 * DAY) is not None


async def test_token_ends_when_its_owner_revokes_it(database: Database) -> None:
    ann, bob = await add(database), await add(database, "bob")
    created = await create(database, ann.id)
    with pytest.raises(CredentialNotFound):
        await revoke_token(database, bob.id, created.view.id, by=BY, now=NOW)
    assert await find_token(database, created.token, now=NOW) is not None
    await revoke_token(database, ann.id, created.view.id, by=BY, now=NOW)
    assert await find_token(database, created.token, now=NOW) is None
    assert await list_tokens(database, ann.id) == []
    with pytest.raises(CredentialNotFound):
        await revoke_token(database, ann.id, created.view.id, by=BY, now=NOW)


async def test_tokens_are_listed_newest_first_including_expired_ones(database: Database) -> None:
    ann, bob = await add(database), await add(database, "bob")
    old = await create(database, ann.id, "old", days=1)
    new = await create_token(database, ann.id, "  new ", expires_at=None, by=BY, now=NOW + 2 * DAY)
    await create(database, bob.id)
    assert await list_tokens(database, ann.id) == [new.view, old.view]
    assert new.view.name == "new"


async def test_use_is_written_at_most_once_a_minute(database: Database) -> None:
    token = (await create(database, (await add(database)).id)).token
    minute = timedelta(minutes=1)
    assert await used_at(database) is None
    for later, written in ((SECOND, SECOND), (minute, SECOND), (minute + SECOND, minute + SECOND)):
        assert await find_token(database, token, now=NOW + later) is not None
        assert await used_at(database) == NOW + written


async def test_concurrent_requests_never_exceed_the_maximum_of_tokens(database: Database) -> None:
    ann, bob = await add(database), await add(database, "bob")
    await create(database, ann.id, days=1)
    later = NOW + DAY
    requests = MAX_TOKENS + 10
    results = await asyncio.gather(
        *(
            create_token(database, ann.id, str(each), expires_at=None, by=BY, now=later)
            for each in range(requests)
        ),
        return_exceptions=True,
    )
    created = [result for result in results if isinstance(result, CreatedToken)]
    # The expired one does not count.
    assert len(created) == MAX_TOKENS
    assert {type(each) for each in results} == {CreatedToken, TooManyTokens}
    await create(database, bob.id)
    await revoke_token(database, ann.id, created[0].view.id, by=BY, now=later)
    await create_token(database, ann.id, "again", expires_at=None, by=BY, now=later)


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "a\0b", "a\nb"])
async def test_token_needs_a_printable_name(database: Database, name: str) -> None:
    with pytest.raises(InvalidTokenName):
        await create(database, uuid4(), name)


async def test_new_token_must_expire_in_the_future(database: Database) -> None:
    with pytest.raises(InvalidExpiry):
        await create(database, (await add(database)).id, days=0)


async def test_disabled_user_gets_no_token(database: Database) -> None:
    ann = await add(database)
    await users.disable_user(database, ann.id, by=BY, now=NOW)
    with pytest.raises(UserNotFound):
        await create(database, ann.id)
