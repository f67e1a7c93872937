"""A cache of callers, so that requests need no database query."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from codehub.db.credentials import find_valid
from codehub.db.session import Database
from codehub.services.identity import Caller, find_session, find_token
from codehub.services.workspace_sessions import find_workspace_session
from proxy.request_kind import Credentials

# A revoked credential stops working within five seconds even if the event about it is lost.
FRESH_SECONDS = 4.0
# Then the caller is looked up again, which also records that the credential is in use.
MAX_SECONDS = 60.0
CAPACITY = 10_000


@dataclass(slots=True)
class CachedCaller:
    """A caller, with the times when it was looked up and last validated."""

    caller: Caller
    # As strings, because every request needs them.
    credential: str
    user_id: str
    found_at: float
    validated_at: float
    # The one workspace (`{id}`) or port (`{port}--{id}`) that the credential is limited to, if any.
    only_for: str | None = None


class CallerCache:
    """The callers of the last minute. Invalid credentials are not cached: they may become valid."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._callers: dict[Credentials, CachedCaller] = {}

    def get(self, credentials: Credentials) -> CachedCaller | None:
        """Return the caller if it is cached and fresh."""
        cached = self._callers.get(credentials)
        if cached is None or self._clock() - cached.validated_at > FRESH_SECONDS:
            return None
        return cached

    async def find(self, credentials: Credentials) -> CachedCaller | None:
        """Return the caller, or None for invalid credentials. Raise if the database does not answer."""
        cached = self.get(credentials)
        if cached is not None:
            return cached
        began = self._clock()
        found = await self._look_up(credentials)
        if found is None:
            self._callers.pop(credentials, None)
            return None
        caller, only_for = found
        if len(self._callers) >= CAPACITY:
            self._callers.clear()
        cached = CachedCaller(caller, str(caller.credential_id), str(caller.user_id), began, began, only_for)
        self._callers[credentials] = cached
        return cached

    async def revalidate(self, in_use: Collection[str]) -> set[str]:
        """Validate all cached credentials and those in use with one query; forget and return invalid ones."""
        began = self._clock()
        self._forget_old(began)
        ids = {cached.credential for cached in self._callers.values()} | set(in_use)
        if not ids:
            return set()
        async with self._database.transaction() as session:
            valid = await find_valid(session, ids, datetime.now(UTC))
        for credentials, cached in list(self._callers.items()):
            if cached.credential in valid:
                cached.validated_at = max(cached.validated_at, began)
            else:
                # One found after the query began may be newer than its result.
                self._forget(credentials, unless_after=began)
        return ids - valid

    @property
    def users(self) -> set[str]:
        return {cached.user_id for cached in self._callers.values()}

    async def _look_up(self, credentials: Credentials) -> tuple[Caller, str | None] | None:
        now, caller = datetime.now(UTC), None
        if credentials.token is not None:
            caller = await find_token(self._database, credentials.token, now=now)
        elif credentials.session is not None:
            caller = await find_session(self._database, credentials.session, now=now)
        elif credentials.workspace is not None:
            entered = await find_workspace_session(self._database, credentials.workspace, now=now)
            return (entered.caller, entered.label) if entered else None
        return (caller, None) if caller else None

    def _forget_old(self, now: float) -> None:
        for credentials, cached in list(self._callers.items()):
            if now - cached.found_at > MAX_SECONDS:
                del self._callers[credentials]

    def _forget(self, credentials: Credentials, unless_after: float) -> None:
        cached = self._callers.get(credentials)
        if cached is not None and cached.found_at <= unless_after:
            del self._callers[credentials]
