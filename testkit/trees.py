"""File trees for tests: make a home with every kind of entry, and describe a tree with all attributes."""

import hashlib
import os
import random
import socket
import stat
import struct
from collections import defaultdict
from pathlib import Path

Description = dict[bytes, dict[str, object]]
_ACL_ATTRIBUTES = ("system.posix_acl_access", "system.posix_acl_default")
_ROOT = os.geteuid() == 0


def describe_tree(root: Path) -> Description:
    """Return all attributes that must survive, by path relative to the root (`.` is the root itself)."""
    groups: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    paths = [os.fsencode(root)]
    for directory, directories, files in os.walk(os.fsencode(root)):
        paths += [os.path.join(directory, name) for name in directories + files]  # noqa: PTH118 (bytes)
    described = {}
    for path in sorted(paths):
        name = os.path.relpath(path, os.fsencode(root))
        status = os.lstat(path)
        groups[status.st_dev, status.st_ino].append(name)
        described[name] = _describe(path, status) | {"links": groups[status.st_dev, status.st_ino]}
    return described


def without_owners(description: Description) -> Description:
    return {
        name: {fact: value for fact, value in facts.items() if fact != "owner"}
        for name, facts in description.items()
    }


def without_root(description: Description) -> Description:
    return {name: facts for name, facts in description.items() if name != b"."}


def _describe(path: bytes, status: os.stat_result) -> dict[str, object]:
    facts: dict[str, object] = {
        "type": stat.S_IFMT(status.st_mode),
        "mode": stat.S_IMODE(status.st_mode),
        "owner": (status.st_uid, status.st_gid),
        "mtime_ns": status.st_mtime_ns,
        "xattrs": {
            name: os.getxattr(path, name, follow_symlinks=False)
            for name in os.listxattr(path, follow_symlinks=False)
        },
    }
    if stat.S_ISLNK(status.st_mode):
        facts["target"] = os.readlink(path)  # noqa: PTH115 (bytes)
    if stat.S_ISREG(status.st_mode):
        facts |= {"size": status.st_size, "sha256": _sha256(path), "sparse": _is_sparse(status)}
    return facts


def _is_sparse(status: os.stat_result) -> bool:
    return status.st_blocks * 512 < status.st_size // 2


def _sha256(path: bytes) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 (bytes)
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_rich_home(root: Path, seed: int = 0) -> None:
    """Make a home with every kind of entry and attribute."""
    generator = random.Random(seed)  # noqa: S311 (data for tests)
    root.mkdir(exist_ok=True)
    _make_files(root, generator)
    _make_links(root)
    _make_names(root)
    _make_attributes(root)
    _make_sparse(root, generator)
    _make_modes(root)
    (root / "empty-directory").mkdir()
    os.mkfifo(root / "fifo")
    _set_times(root, generator)


def make_home_of_user(root: Path, user_id: int) -> None:
    """Make a home as the user's own programs could: they own everything, and some of it is unreadable."""
    make_rich_home(root)
    os.removexattr(root / "attributes", "security.capability")
    for name in ("nothing", "closed/inner/file"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in root.rglob("*") if not path.is_symlink()}
    for path in root.rglob("*"):
        os.chown(path, user_id, user_id, follow_symlinks=False)
    closed = {root / name: 0 for name in ("nothing", "closed/inner/file", "closed/inner", "closed")}
    # A change of the owner removes the setuid and setgid bits.
    for path, mode in (modes | closed).items():
        path.chmod(mode)


def _make_files(root: Path, generator: random.Random) -> None:
    for index in range(20):
        directory = root / f"project{index % 4}" / "src"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"file{index}.bin").write_bytes(generator.randbytes(generator.randrange(20_000)))
    (root / "empty").touch()


def _make_links(root: Path) -> None:
    (root / "venv").mkdir()
    (root / "venv" / "python").symlink_to("/usr/bin/python3")
    (root / "outside").symlink_to("../../etc/passwd")
    (root / "dangling").symlink_to("nowhere")
    (root / "to-directory").symlink_to("project0")
    (root / "original").write_text("linked")
    (root / "project0" / "hard").hardlink_to(root / "original")
    (root / "project1" / "hard").hardlink_to(root / "original")
    (root / "long-link").symlink_to("x/" * 150 + "end")


def _make_names(root: Path) -> None:
    for name in (
        b"n" * 255,
        b"not-utf8-\xff\xfe",
        b"new\nline",
        b" space ",
        b"-rf",
        b"back\\slash",
        b"...",
        b"*",
    ):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(name)
    deep = root.joinpath("deep", *["d" * 60] * 12)
    deep.mkdir(parents=True)
    (deep / "file").write_text("deep")


def _make_attributes(root: Path) -> None:
    file = root / "attributes"
    file.write_text("attributes")
    os.setxattr(file, "user.comment", b"binary \x00\n\xff value")
    os.setxattr(file, "user.empty", b"")
    os.setxattr(root / "venv", "user.on-directory", b"yes")
    shared = root / "shared"
    shared.mkdir()
    for name in _ACL_ATTRIBUTES:
        os.setxattr(shared, name, _acl(1234))
    if _ROOT:
        os.chown(file, 1000, 2000)
        os.chown(root / "dangling", 1001, 1001, follow_symlinks=False)
        # cap_net_raw=ep; chown would remove it.
        os.setxattr(file, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))


def _acl(user: int) -> bytes:
    """Return the kernel's form of `u::rwx,u:{user}:r-x,g::r-x,m::rwx,o::---`."""
    nobody = 0xFFFFFFFF
    entries = ((0x01, 7, nobody), (0x02, 5, user), (0x04, 5, nobody), (0x10, 7, nobody), (0x20, 0, nobody))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def _make_sparse(root: Path, generator: random.Random) -> None:
    with (root / "sparse").open("wb") as file:
        for offset in range(0, 40 * 1024 * 1024, 8 * 1024 * 1024):
            file.seek(offset)
            file.write(generator.randbytes(5000))
        file.truncate(64 * 1024 * 1024)
    with (root / "only-hole").open("wb") as file:
        file.truncate(10 * 1024 * 1024)


def _make_modes(root: Path) -> None:
    for name, mode in {"setuid": 0o4755, "setgid": 0o2755, "secret": 0o600, "read-only": 0o444}.items():
        (root / name).write_text(name)
        (root / name).chmod(mode)
    for name, mode in {"sticky": 0o1777, "setgid-directory": 0o2775, "locked": 0o555}.items():
        (root / name).mkdir()
        (root / name / "content").write_text(name)
        (root / name).chmod(mode)


def _set_times(root: Path, generator: random.Random) -> None:
    for directory, directories, files in os.walk(root, topdown=False):
        for name in [*files, *directories, "."]:
            moment = generator.randrange(10**9, 2 * 10**9) * 10**9 + generator.randrange(10**9)
            os.utime(Path(directory) / name, ns=(moment, moment), follow_symlinks=False)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))
