"""Who is asking: remembered for seconds, so that the database is not asked for every request."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from codehub.db.credentials import find_valid
from codehub.db.session import Database
from codehub.services.identity import Caller, find_session, find_token
from proxy.request_kind import Shown

# A revoked credential stops within five seconds, whatever happens to the event that tells of it.
FRESH_SECONDS = 4.0
# After that it is looked up anew, which also writes down that it is in use.
LONGEST_SECONDS = 60.0
CAPACITY = 10_000


@dataclass(slots=True)
class CachedCaller:
    """A caller, when that was looked up, and when it was last confirmed."""

    caller: Caller
    # As texts, because every request needs them.
    credential: str
    holder: str
    found_at: float
    confirmed_at: float


class CallerCache:
    """The callers of the last minute. Strangers are not remembered: they may sign in at any time."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._known: dict[Shown, CachedCaller] = {}

    def get(self, shown: Shown) -> CachedCaller | None:
        """Who that is, if it is known and still sure."""
        known = self._known.get(shown)
        if known is None or self._clock() - known.confirmed_at > FRESH_SECONDS:
            return None
        return known

    async def find(self, shown: Shown) -> CachedCaller | None:
        """Who that is; None for a stranger. Raises when the database cannot be asked."""
        known = self.get(shown)
        if known is not None:
            return known
        began = self._clock()
        caller = await self._look_up(shown)
        if caller is None:
            self._known.pop(shown, None)
            return None
        if len(self._known) >= CAPACITY:
            self._known.clear()
        known = CachedCaller(caller, str(caller.credential_id), str(caller.user_id), began, began)
        self._known[shown] = known
        return known

    async def confirm(self, held: Collection[str]) -> set[str]:
        """Ask for all at once; forget and name those that are no longer valid, of the held ones too."""
        began = self._clock()
        self._forget_old(began)
        ids = {known.credential for known in self._known.values()} | set(held)
        if not ids:
            return set()
        async with self._database.transaction() as session:
            valid = await find_valid(session, ids, datetime.now(UTC))
        for shown, known in list(self._known.items()):
            if known.credential in valid:
                known.confirmed_at = max(known.confirmed_at, began)
            else:
                # One that was found after the question was asked is not meant.
                self._forget(shown, unless_after=began)
        return ids - valid

    @property
    def users(self) -> set[str]:
        return {known.holder for known in self._known.values()}

    async def _look_up(self, shown: Shown) -> Caller | None:
        now = datetime.now(UTC)
        if shown.token is not None:
            return await find_token(self._database, shown.token, now=now)
        if shown.session is not None:
            return await find_session(self._database, shown.session, now=now)
        return None

    def _forget_old(self, now: float) -> None:
        for shown, known in list(self._known.items()):
            if now - known.found_at > LONGEST_SECONDS:
                del self._known[shown]

    def _forget(self, shown: Shown, unless_after: float) -> None:
        known = self._known.get(shown)
        if known is not None and known.found_at <= unless_after:
            del self._known[shown]
