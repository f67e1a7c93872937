"""Decide which members may be extracted: none outside the root, none through a link, no devices."""

from storage_job.errors import CorruptedArchive, JobError

FILE, HARD_LINK, SYMLINK, DIRECTORY, FIFO, OLD_SPARSE = b"0", b"1", b"2", b"5", b"6", b"S"
_DEVICES = (b"3", b"4")
ALLOWED = (FILE, HARD_LINK, SYMLINK, DIRECTORY, FIFO, OLD_SPARSE)
# The kernel accepts no longer path. tar can read deeper trees, but could not extract what it wrote.
_MAX_PATH_BYTES = 4095


class MemberRules:
    """Checks members in the order of the archive, remembering only the current directory.

    tar writes a tree depth first, so the parent of each member must be on the path to the current directory.
    Any other parent might be a symlink. This avoids a list of all symlinks, which could grow without bound.
    """

    def __init__(self) -> None:
        self.has_root = False
        self._directory: list[bytes] = []
        self._seen_symlink = False

    def admit(self, kind: bytes, name: bytes, link_name: bytes) -> None:
        if kind in _DEVICES:
            raise _refused(name, "is a device node")
        if kind not in ALLOWED:
            raise _refused(name, f"has the unknown type {kind!r}")
        if name.endswith(b"/") and kind != DIRECTORY:
            raise _refused(name, "has the name of a directory but is not one")
        parts = _split_path(name, name)
        if kind == HARD_LINK and not _split_path(link_name, name):
            raise _refused(name, "is a hard link to the root")
        if kind == SYMLINK and not link_name:
            raise _refused(name, "is a symlink without a target")
        self._enter(parts, kind, name)

    def _enter(self, parts: list[bytes], kind: bytes, name: bytes) -> None:
        if not parts:
            if kind != DIRECTORY:
                raise _refused(name, "replaces the root")
            self.has_root = True
        parent = parts[:-1]
        # Some programs omit directories; before the first symlink, a missing parent cannot be one.
        if self._seen_symlink and self._directory[: len(parent)] != parent:
            raise _refused(name, "does not follow its directory, so its path may contain a symlink")
        self._directory = parts if kind == DIRECTORY else parent
        self._seen_symlink = self._seen_symlink or kind == SYMLINK


def _split_path(path: bytes, name: bytes) -> list[bytes]:
    """Split a path into its parts; refuse one that leaves the root."""
    if not path or path.startswith(b"/"):
        raise _refused(name, "has an absolute or empty path")
    if len(path.rstrip(b"/")) > _MAX_PATH_BYTES:
        raise _refused(name, f"has a path longer than {_MAX_PATH_BYTES} bytes")
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise _refused(name, "leaves the root with ..")
    return parts


def _refused(name: bytes, why: str) -> JobError:
    return CorruptedArchive(f"its member {name[:200].decode(errors='backslashreplace')!r} {why}")
