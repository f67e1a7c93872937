"""Wrong passwords for names that nobody has, so that lock-out does not tell which names exist."""

import hashlib
from collections import OrderedDict
from datetime import datetime

from codehub.domain.lockout import Failures, with_one_more

MOST_NAMES = 10_000


class UnknownNames:
    """Counts as the rows of real users do, but in the memory of this process.

    Its limits: a restart forgets it, other API processes do not see it, and after `most` further unknown
    names, each of which costs a verification, the one that was tried longest ago is forgotten. Somebody who
    brings one of these about can find out whether a name exists; real users stay locked all the same.
    """

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._failures: OrderedDict[bytes, Failures] = OrderedDict()

    def failures(self, username: str) -> Failures:
        return self._failures.get(_key(username), Failures())

    def count_failure(self, username: str, now: datetime) -> None:
        key = _key(username)
        self._failures[key] = with_one_more(self._failures.pop(key, Failures()), now)
        if len(self._failures) > self._most:
            self._failures.popitem(last=False)


def _key(username: str) -> bytes:
    """Of one size, however long the name is."""
    return hashlib.sha256(username.lower().encode(errors="surrogatepass")).digest()
