"""Whether a workspace has to exist: what was asked for about its deletion, and what was answered."""

from dataclasses import dataclass, field


@dataclass
class Fate:
    """A wish is noted before it is sent, then its end; without an answer, it may come true at any time."""

    purged: bool = False
    _deleted: bool = False
    _open_deletions: set[int] = field(default_factory=set)
    _open_returns: set[int] = field(default_factory=set)
    _asked: int = 0

    @property
    def must_exist(self) -> bool:
        """Nobody's wish explains it if it is deleted."""
        return not self._deleted and not self._open_deletions

    @property
    def must_be_gone(self) -> bool:
        """Nobody's wish explains it if it is not deleted; a purge cannot be taken back."""
        return self.purged or (self._deleted and not self._open_returns)

    def ask_deletion(self) -> int:
        self._asked += 1
        self._open_deletions.add(self._asked)
        return self._asked

    def acknowledge_deletion(self, number: int, *, purged: bool) -> None:
        self._open_deletions.discard(number)
        self._deleted = True
        self.purged = self.purged or purged

    def refuse_deletion(self, number: int) -> None:
        self._open_deletions.discard(number)

    def ask_return(self) -> int:
        self._asked += 1
        self._open_returns.add(self._asked)
        return self._asked

    def acknowledge_return(self, number: int) -> None:
        self._open_returns.discard(number)
        self._deleted = False

    def refuse_return(self, number: int) -> None:
        self._open_returns.discard(number)
