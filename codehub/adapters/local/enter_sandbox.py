"""Starts bubblewrap as an unprivileged user. A program of its own that root runs: `enter_sandbox.py REQUEST`.

That user cannot enter the parent directories of a home. So everything that the sandbox shows is first mounted
below /tmp, in a mount namespace of this process.
"""

import ctypes
import json
import os
import stat
import sys
from pathlib import Path

STAGE = "/tmp"  # noqa: S108 (in a mount namespace of its own)
CLONE_NEWNS = 0x00020000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


def main(request: str) -> None:
    options = json.loads(request)
    for path in options["cgroups"]:
        # Writing 0 moves the writing process.
        Path(path, "cgroup.procs").write_text("0")
    _check(_libc.unshare(CLONE_NEWNS))
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    # Open everything before the new mount hides /tmp.
    program = os.open(options["program"], os.O_RDONLY)
    sources = [os.open(path, os.O_PATH) for path in options["mounts"]]
    _mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
    for number, source in enumerate(sources):
        _mount(f"/proc/self/fd/{source}", _mount_point(number, source), None, MS_BIND | MS_REC)
    os.chdir("/")
    _become(options["uid"])
    os.execve(program, options["command"], os.environ)  # noqa: S606


def _mount_point(number: int, source: int) -> str:
    path = f"{STAGE}/{number}"
    if stat.S_ISDIR(os.fstat(source).st_mode):
        os.mkdir(path, 0o755)  # noqa: PTH102
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    return path


def _become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = (source.encode(), target.encode(), kind.encode() if kind else None)
    _check(_libc.mount(*words, ctypes.c_ulong(flags), options.encode() if options else None), target)


def _check(result: int, what: str = "") -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    main(sys.argv[1])
