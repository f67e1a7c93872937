"""The journal: which files and workspaces must exist, given what was requested and acknowledged."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

SHOWN_DIGITS = 12

# The SHA-256 of a file's content; None means that the file does not exist.
Content = str | None


@dataclass(frozen=True, eq=False)
class Change:
    """A request to replace one content of a file by another; every content is unique in a game."""

    workspace_id: str
    name: str
    before: Content
    after: Content


@dataclass
class FileRecord:
    """The known content of a file, its earlier contents, and the changes whose result is unknown."""

    known: Content = None
    # Sent and not known to be refused: any of them may still take effect at any time.
    open: list[Change] = field(default_factory=list)
    past: set[Content] = field(default_factory=set)

    def possible(self) -> set[Content]:
        """Return every content that the file may have; a change applies only to the content it names."""
        found, fresh = set[Content](), {self.known}
        while fresh:
            found |= fresh
            fresh = {change.after for change in self.open if change.before in found} - found
        return found

    def settle(self, content: Content) -> None:
        """Record the current content; the change that wrote it cannot take effect again."""
        self.past.add(self.known)
        self.known = content
        self.open = [change for change in self.open if change.after != content or content is None]

    def check(self, name: str, content: Content) -> list[str]:
        """Return what is wrong if the file has this content."""
        if content in self.possible():
            return []
        if content is None:
            return [f"{name} is missing; it should be {_short(self.known)}"]
        kind = "an older content" if content in self.past else "a content that was never acknowledged"
        return [f"{name} has {kind}, {_short(content)}; it should be {_short(self.known)}"]


@dataclass
class Existence:
    """Whether a workspace must exist; a request without a response may take effect at any time."""

    purged: bool = False
    _deleted: bool = False
    _open_deletions: set[int] = field(default_factory=set)
    _open_undeletes: set[int] = field(default_factory=set)
    _requests: int = 0

    @property
    def must_exist(self) -> bool:
        """Return whether no request explains a deletion."""
        return not self._deleted and not self._open_deletions

    @property
    def must_be_gone(self) -> bool:
        """Return whether no request explains that it exists; a purge cannot be undone."""
        return self.purged or (self._deleted and not self._open_undeletes)

    def begin_deletion(self) -> int:
        self._requests += 1
        self._open_deletions.add(self._requests)
        return self._requests

    def acknowledge_deletion(self, request: int, *, purged: bool) -> None:
        self._open_deletions.discard(request)
        self._deleted = True
        self.purged = self.purged or purged

    def refuse_deletion(self, request: int) -> None:
        self._open_deletions.discard(request)

    def begin_undelete(self) -> int:
        self._requests += 1
        self._open_undeletes.add(self._requests)
        return self._requests

    def acknowledge_undelete(self, request: int) -> None:
        self._open_undeletes.discard(request)
        self._deleted = False

    def refuse_undelete(self, request: int) -> None:
        self._open_undeletes.discard(request)


class Journal:
    """All files of all workspaces. Begin a change before sending it, then record how it ended."""

    def __init__(self) -> None:
        self._files: defaultdict[str, defaultdict[str, FileRecord]] = defaultdict(
            lambda: defaultdict(FileRecord)
        )
        self._existence: defaultdict[str, Existence] = defaultdict(Existence)

    def existence(self, workspace_id: str) -> Existence:
        return self._existence[workspace_id]

    def begin(self, workspace_id: str, name: str, before: Content, after: Content) -> Change:
        change = Change(workspace_id, name, before, after)
        self._file(change).open.append(change)
        return change

    def acknowledge(self, change: Change) -> list[str]:
        """Record that the change took effect: the file had the old content and has the new one now."""
        file = self._file(change)
        file.open.remove(change)
        problems = file.check(change.name, change.before)
        file.settle(change.after)
        return problems

    def refuse(self, change: Change) -> None:
        """Record that the change did not take effect and never will."""
        self._file(change).open.remove(change)

    def refuse_other_content(self, change: Change) -> list[str]:
        """Record a refusal because the file had other content than the change names."""
        self.refuse(change)
        if self._file(change).possible() - {change.before}:
            return []
        return [f"{change.name} should be {_short(change.before)}, but the IDE found other content"]

    def leave_open(self, change: Change) -> None:
        """Record that no response came: the change may take effect now, later or never."""
        if change not in self._file(change).open:
            raise ValueError("Only a change that has begun and not ended can be left open.")

    def observe(self, workspace_id: str, name: str, content: Content) -> list[str]:
        """Record content that was read; it is as certain as an acknowledged one."""
        file = self._files[workspace_id][name]
        problems = file.check(name, content)
        if not problems and content != file.known:
            file.settle(content)
        return problems

    def observe_all(self, workspace_id: str, tree: Mapping[str, str]) -> list[str]:
        """Record all files that were read, and that no others exist."""
        problems = self.verify(workspace_id, tree)
        for name in self._files[workspace_id]:
            self.observe(workspace_id, name, tree.get(name))
        return problems

    def verify(self, workspace_id: str, tree: Mapping[str, str]) -> list[str]:
        """Return a problem for each missing, outdated, wrong or unknown file."""
        files = self._files[workspace_id]
        problems = [words for name in files for words in files[name].check(name, tree.get(name))]
        return problems + [f"nobody wrote {name}" for name in tree if name not in files]

    def expected(self, workspace_id: str) -> dict[str, frozenset[Content]]:
        """Return the possible contents of each file."""
        return {name: frozenset(file.possible()) for name, file in self._files[workspace_id].items()}

    def known(self, workspace_id: str) -> dict[str, str]:
        """Return the last acknowledged or observed content of each existing file."""
        files = self._files[workspace_id].items()
        return {name: file.known for name, file in files if file.known is not None}

    def is_certain(self, workspace_id: str, name: str) -> bool:
        return len(self._files[workspace_id][name].possible()) == 1

    def _file(self, change: Change) -> FileRecord:
        return self._files[change.workspace_id][change.name]


def _short(content: Content) -> str:
    return content[:SHOWN_DIGITS] if content else "absent"
