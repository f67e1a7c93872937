"""Lets an unprivileged job read files that their owner made unreadable, and restores the modes afterwards.

A job that runs as the owner of a home cannot read a file with mode 000, but may change its mode. The archive
records the original mode. A list in the volume lets the next job undo the changes of a killed one.
"""

import contextlib
import json
import os
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from storage_job.concurrency import run_to_completion
from storage_job.errors import action_failed
from storage_job.remove_tree import remove_tree
from storage_job.volume import WORK_NAME, foreign_names

LIST_NAME = "modes"
MAX_ENTRIES = 100_000
_STATUS = Path("/proc/self/status")
# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
_READ_ANYTHING = 1 << 1 | 1 << 2
_OPEN = stat.S_IRUSR | stat.S_IXUSR

# The original mode of each changed entry, by its name in the archive.
Modes = Mapping[bytes, int]


@contextlib.asynccontextmanager
async def made_readable(data_dir: Path) -> AsyncIterator[Modes]:
    """Make the whole home readable during the block; yield the original modes."""
    changes = ModeChanges(data_dir)
    try:
        await run_to_completion(changes.make)
        yield changes.original
    finally:
        await run_to_completion(changes.undo)


@dataclass
class ModeChanges:
    """The changed modes of one home."""

    data_dir: Path
    original: dict[bytes, int] = field(default_factory=dict)

    @property
    def _work(self) -> Path:
        return self.data_dir / WORK_NAME

    def make(self) -> None:
        if _reads_everything():
            return
        try:
            self._undo_noted()
            # A file with several names needs its original mode under each name, so files change last.
            for name, mode in [*self._unreadable_files()]:
                self._change(name, mode, mode | stat.S_IRUSR)
        except OSError as error:
            raise action_failed(f"Cannot read the home ({error}). Check it, then try again.") from error

    def undo(self) -> None:
        if self.original:
            self._undo_noted()

    def _unreadable_files(self) -> Iterator[tuple[bytes, int]]:
        """Yield the files with their modes; make directories readable on the way down, at any depth."""
        root = os.fsencode(self.data_dir)
        hidden = {os.path.join(root, os.fsencode(name)) for name in self._hidden_names()}  # noqa: PTH118
        directories = [root]
        while directories:
            for entry, mode in _own_entries(directories.pop()):
                if entry.path in hidden:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    self._open_directory(entry.path, mode)
                    directories.append(entry.path)
                elif entry.is_file(follow_symlinks=False) and not mode & stat.S_IRUSR:
                    yield self._name(entry.path), mode

    def _hidden_names(self) -> tuple[str, ...]:
        return (WORK_NAME, *foreign_names(self.data_dir))

    def _open_directory(self, path: bytes, mode: int) -> None:
        if mode & _OPEN != _OPEN:
            self._change(self._name(path), mode, mode | _OPEN)

    def _change(self, name: bytes, mode: int, changed: int) -> None:
        if len(self.original) >= MAX_ENTRIES:
            advice = "Make them readable, then try again."
            raise action_failed(f"The home has more than {MAX_ENTRIES} unreadable entries. {advice}")
        self._note(name, mode, changed)
        self.original[name] = mode
        self._path(name).chmod(changed)

    def _note(self, name: bytes, mode: int, changed: int) -> None:
        self._work.mkdir(mode=0o700, exist_ok=True)
        with (self._work / LIST_NAME).open("a") as file:
            file.write(json.dumps([name.hex(), mode, changed]) + "\n")

    def _undo_noted(self) -> None:
        """Restore the listed modes, including those of a killed job, unless they were changed since."""
        if not (self._work / LIST_NAME).is_file():
            return
        # Deepest first, because an unreadable directory hides its content.
        for name, mode, changed in reversed([*_read_list(self._work / LIST_NAME)]):
            with contextlib.suppress(FileNotFoundError):
                if stat.S_IMODE(self._path(name).lstat().st_mode) == changed:
                    self._path(name).chmod(mode)
        remove_tree(self._work, lambda: None)

    def _name(self, path: bytes) -> bytes:
        return b"./" + os.path.relpath(path, os.fsencode(self.data_dir))

    def _path(self, name: bytes) -> Path:
        return self.data_dir / os.fsdecode(name)


def _own_entries(directory: bytes) -> Iterator[tuple[os.DirEntry[bytes], int]]:
    """Yield this user's entries with their modes. tar reports the others if it cannot read them."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if status.st_uid == os.geteuid():
                yield entry, stat.S_IMODE(status.st_mode)


def _read_list(file: Path) -> Iterator[tuple[bytes, int, int]]:
    for line in file.read_text().splitlines():
        # The last line of a killed job may be incomplete; then its change was not made.
        with contextlib.suppress(ValueError):
            name, mode, changed = json.loads(line)
            yield bytes.fromhex(name), mode, changed


def _reads_everything() -> bool:
    lines = _STATUS.read_text().splitlines()
    effective = next(line.split()[1] for line in lines if line.startswith("CapEff:"))
    return bool(int(effective, 16) & _READ_ANYTHING)
