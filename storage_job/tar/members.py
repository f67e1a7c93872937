"""Which members may be extracted: nothing outside the root, nothing through a link, no devices."""

from storage_job.errors import CorruptedArchive, JobError

FILE, HARD_LINK, SYMLINK, DIRECTORY, FIFO, OLD_SPARSE = b"0", b"1", b"2", b"5", b"6", b"S"
_DEVICES = (b"3", b"4")
ALLOWED = (FILE, HARD_LINK, SYMLINK, DIRECTORY, FIFO, OLD_SPARSE)
# The kernel takes no longer one. tar reads deeper trees than that, but what it writes then cannot come back.
_LONGEST_PATH = 4095


class MemberRules:
    """Judges members in the order of the archive, remembering only the directory it is in.

    tar writes a tree depth first, so every parent is a directory on the way down to the last one seen. A
    parent that is not could be a symlink by now. So no list of symlinks is kept, whose length nothing bounds.
    """

    def __init__(self) -> None:
        self.has_root = False
        self._directory: list[bytes] = []
        self._seen_symlink = False

    def admit(self, kind: bytes, name: bytes, link_name: bytes) -> None:
        if kind in _DEVICES:
            raise _refused(name, "is a device node")
        if kind not in ALLOWED:
            raise _refused(name, f"is of the unknown type {kind!r}")
        if name.endswith(b"/") and kind != DIRECTORY:
            raise _refused(name, "has a directory's name but is none")
        parts = _inside(name, name)
        if kind == HARD_LINK and not _inside(link_name, name):
            raise _refused(name, "is a hard link to the root")
        if kind == SYMLINK and not link_name:
            raise _refused(name, "is a symlink to nothing")
        self._enter(parts, kind, name)

    def _enter(self, parts: list[bytes], kind: bytes, name: bytes) -> None:
        if not parts:
            if kind != DIRECTORY:
                raise _refused(name, "replaces the root")
            self.has_root = True
        parent = parts[:-1]
        # Some programs leave directories out; while there is no symlink yet, a missing parent cannot be one.
        if self._seen_symlink and self._directory[: len(parent)] != parent:
            raise _refused(name, "does not follow its directory, so it may lead through a link")
        self._directory = parts if kind == DIRECTORY else parent
        self._seen_symlink = self._seen_symlink or kind == SYMLINK


def _inside(path: bytes, name: bytes) -> list[bytes]:
    if not path or path.startswith(b"/"):
        raise _refused(name, "has an absolute or empty path")
    if len(path.rstrip(b"/")) > _LONGEST_PATH:
        raise _refused(name, f"has a path longer than {_LONGEST_PATH} bytes")
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise _refused(name, "leads out of the root with ..")
    return parts


def _refused(name: bytes, why: str) -> JobError:
    return CorruptedArchive(f"its member {name[:200].decode(errors='backslashreplace')!r} {why}")
