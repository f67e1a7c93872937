"""Refuse to run where the homes of this database are not: another backend, another store, or still in M1."""

import logging
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.home_store import (
    RecordedStore,
    backends_in_use,
    load_home_store,
    load_homes,
    record_home_store,
    replace_home_store,
)
from codehub.db.m1_homes import find_unimported
from codehub.db.session import Database
from codehub.domain.failures import Transient
from codehub.ports import HomeStore, Volumes

log = logging.getLogger(__name__)

ADOPT = "run `codehub homes adopt`"


class WrongHomeStore(Exception):
    """The database records another home store; the message is for people."""


class WrongBackend(Exception):
    """Some workspaces belong to another backend; the message is for people."""


class HomesNotImported(Exception):
    """Homes have to be imported from M1 first; the message is for people."""


@dataclass(frozen=True)
class Homes:
    """A backend with its home store and its volumes."""

    backend: str
    store: HomeStore
    volumes: Volumes


@dataclass(frozen=True)
class Comparison:
    """The recorded store and the present one, and how many of the expected homes the present one has."""

    recorded: RecordedStore | None
    identity: str | None
    expected: int
    present: int


async def ensure_home_store(database: Database, homes: Homes) -> None:
    """Record the store at the first start; raise WrongHomeStore if another one is recorded.

    A database of an older version accepts the present store if that has at least one of its homes.
    """
    recorded = await _load(database)
    if recorded is None:
        await _require_homes(database, homes)
        identity = await homes.store.create_identity()
        async with database.transaction() as session:
            await record_home_store(session, homes.backend, identity, homes.store.location)
    await check_home_store(database, homes)


async def check_home_store(database: Database, homes: Homes) -> None:
    """Raise WrongHomeStore if the database records another store; only warn if the store does not respond."""
    recorded = await _load(database)
    if recorded is None:
        return
    try:
        identity = await homes.store.read_identity()
    except Transient as failure:
        log.warning("cannot check whether the homes are in %s: %s", homes.store.location, failure)
        return
    if problem := explain_difference(recorded, homes.backend, homes.store, identity):
        raise WrongHomeStore(problem)


async def compare_home_stores(database: Database, homes: Homes) -> Comparison:
    """Compare the recorded store with the present one; change nothing."""
    identity = await homes.store.read_identity()
    async with database.transaction() as session:
        recorded, expected = await load_home_store(session), await load_homes(session)
    try:
        listed = frozenset(await homes.volumes.list_all())
    except Transient:
        if identity is not None:
            raise
        # A directory that was never set up cannot be listed.
        listed = frozenset()
    return Comparison(recorded, identity, len(expected), len(expected & listed))


async def adopt_home_store(database: Database, homes: Homes, now: datetime) -> None:
    """Replace the recorded store with the current one. Call this only when a person has asked for it."""
    identity = await homes.store.create_identity()
    async with database.transaction() as session:
        await replace_home_store(session, homes.backend, identity, homes.store.location, now)


def explain_difference(
    recorded: RecordedStore, backend: str, store: HomeStore, identity: str | None
) -> str | None:
    """Return a sentence that says what to do, or None if the store is the recorded one."""
    if (recorded.backend, recorded.identity) == (backend, identity):
        return None
    found = "is a different store" if identity else "is empty or not mounted"
    return (
        f"The homes of this database are in {recorded.location}, but {store.location} {found}, so every home "
        f"would count as lost: start CodeHub where the homes are, or, if you have moved them, {ADOPT}."
    )


async def require_backend(session: AsyncSession, configured: str) -> None:
    """Raise WrongBackend unless all workspaces that are not DELETED belong to this backend."""
    in_use = await backends_in_use(session)
    if not in_use <= {configured}:
        raise WrongBackend(_explain(in_use, configured))


async def require_homes_imported(session: AsyncSession) -> None:
    """Raise HomesNotImported while homes are still in M1's directories."""
    if (unimported := await find_unimported(session)) is not None:
        raise HomesNotImported(
            f"The homes of {unimported.count} workspaces (one is {unimported.example!r}) are still in the "
            "directories of M1: import them with `codehub migrate --import-homes DIR`, where DIR is the "
            "directory that has M1's users/ in it, then start CodeHub again."
        )


async def _require_homes(database: Database, homes: Homes) -> None:
    async with database.transaction() as session:
        expected = await load_homes(session)
    if expected and expected.isdisjoint(await homes.volumes.list_all()):
        raise WrongHomeStore(
            f"None of the {len(expected)} homes of this database is in {homes.store.location}: "
            f"start CodeHub where the homes are, or, if they are lost or you will move them, {ADOPT}."
        )


async def _load(database: Database) -> RecordedStore | None:
    async with database.transaction() as session:
        return await load_home_store(session)


def _explain(in_use: set[str], configured: str) -> str:
    others = sorted(in_use - {configured})
    remedy = (
        f"set CODEHUB_WORKSPACES_INSTANCE_BACKEND={others[0]}"
        if in_use == set(others[:1])
        else "use a database for each backend"
    )
    return (
        f"The database holds workspaces of the backend {' and '.join(others)}, but CodeHub is set to run "
        f"{configured}, which does not have their homes: {remedy}, or delete those workspaces first."
    )
