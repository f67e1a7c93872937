"""Whether a workspace has to exist: what was asked for about its deletion, and what was answered."""

from collections import defaultdict
from collections.abc import Mapping
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


SHOWN_DIGITS = 12

# The sha256 of a content; None stands for a file that is not there.
Content = str | None


@dataclass(frozen=True, eq=False)
class Change:
    """A request to replace one content of a file by another; each content comes only once in a game."""

    workspace_id: str
    name: str
    before: Content
    after: Content


@dataclass
class FileRecord:
    """What is known of one file."""

    known: Content = None
    # Sent, and not known to have been refused. Any of them may still arrive, at any time.
    open: list[Change] = field(default_factory=list)
    past: set[Content] = field(default_factory=set)

    def possible(self) -> set[Content]:
        """A change happens only to the content that it names, so what others have left ends its chance."""
        found, fresh = set[Content](), {self.known}
        while fresh:
            found |= fresh
            fresh = {change.after for change in self.open if change.before in found} - found
        return found

    def settle(self, content: Content) -> None:
        """It has this content now, so the change that made it has happened and does not happen again."""
        self.past.add(self.known)
        self.known = content
        self.open = [change for change in self.open if change.after != content or content is None]

    def judge(self, name: str, content: Content) -> list[str]:
        """Nothing, or words for what is wrong if this is the content."""
        if content in self.possible():
            return []
        if content is None:
            return [f"{name} is missing; it should be {_short(self.known)}"]
        kind = "an older content" if content in self.past else "a content that nobody acknowledged"
        return [f"{name} has {kind}, {_short(content)}; it should be {_short(self.known)}"]


class Journal:
    """All files of all workspaces. A change begins before it is sent; what follows says how it ended."""

    def __init__(self) -> None:
        self._files: defaultdict[str, defaultdict[str, FileRecord]] = defaultdict(
            lambda: defaultdict(FileRecord)
        )
        self._fates: defaultdict[str, Fate] = defaultdict(Fate)

    def fate(self, workspace_id: str) -> Fate:
        """Whether the workspace itself has to exist."""
        return self._fates[workspace_id]

    def begin(self, workspace_id: str, name: str, before: Content, after: Content) -> Change:
        change = Change(workspace_id, name, before, after)
        self._record(change).open.append(change)
        return change

    def acknowledge(self, change: Change) -> list[str]:
        """It has happened: the file had the content that the change names, and has the new one now."""
        record = self._record(change)
        record.open.remove(change)
        problems = record.judge(change.name, change.before)
        record.settle(change.after)
        return problems

    def refuse(self, change: Change) -> None:
        """It has not happened and never will."""
        self._record(change).open.remove(change)

    def refuse_other_content(self, change: Change) -> list[str]:
        """Refused because the file had another content than the change names."""
        self.refuse(change)
        record = self._record(change)
        if record.possible() - {change.before}:
            return []
        return [f"{change.name} is said to be other than {_short(change.before)}, which it should be"]

    def give_up(self, change: Change) -> None:
        """No answer came: from now on it may or may not have happened, or happen later."""
        if change not in self._record(change).open:
            raise ValueError("Only a change that has begun and not ended can be given up.")

    def see(self, workspace_id: str, name: str, content: Content) -> list[str]:
        """Somebody has read this; what has been seen is as sure as what was acknowledged."""
        record = self._files[workspace_id][name]
        problems = record.judge(name, content)
        if not problems and content != record.known:
            record.settle(content)
        return problems

    def see_all(self, workspace_id: str, tree: Mapping[str, str]) -> list[str]:
        """The same for all files at once, and those that are not there."""
        problems = self.verify(workspace_id, tree)
        for name in self._files[workspace_id]:
            self.see(workspace_id, name, tree.get(name))
        return problems

    def verify(self, workspace_id: str, tree: Mapping[str, str]) -> list[str]:
        """Words for each file that is missing, older, another, or not known at all; none if all is right."""
        files = self._files[workspace_id]
        problems = [words for name in files for words in files[name].judge(name, tree.get(name))]
        return problems + [f"{name} was written by nobody" for name in tree if name not in files]

    def expected(self, workspace_id: str) -> dict[str, frozenset[Content]]:
        """The contents that each file may have."""
        return {name: frozenset(record.possible()) for name, record in self._files[workspace_id].items()}

    def known(self, workspace_id: str) -> dict[str, str]:
        """What was last acknowledged or seen of each file that is there."""
        records = self._files[workspace_id].items()
        return {name: record.known for name, record in records if record.known is not None}

    def is_sure(self, workspace_id: str, name: str) -> bool:
        return len(self._files[workspace_id][name].possible()) == 1

    def _record(self, change: Change) -> FileRecord:
        return self._files[change.workspace_id][change.name]


def _short(content: Content) -> str:
    return content[:SHOWN_DIGITS] if content else "absent"
