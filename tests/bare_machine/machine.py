"""A Debian with only python3, make and git, in memory and in its own namespaces."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from testkit.needs import need_program, need_root

REPOSITORY = Path(__file__).parents[2]
SUITE = "bookworm"
PACKAGES = ("git", "make", "python3", "python3-venv", "usr-is-merged")
CERTIFICATES = "etc/machine-certificates.crt"
SOURCE = "srv/codehub"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
# Long enough for a busy machine; most of it is downloads.
COMMAND_SECONDS = 900
READY = "the machine is ready\n"
# The files, mounts and processes end with the first process. The machine has its own root, because a sandbox
# cannot be created in a chroot.
INSTALL = """\
set -e
mount -t tmpfs -o mode=755,size=6G tmpfs "$1"
cd "$1"
shift
"$@" . >&2
mount -t proc proc proc
mount --rbind /dev dev
pivot_root . mnt
umount --lazy /mnt
echo {ready}
exec sleep infinity
"""


@dataclass(frozen=True)
class BareMachine:
    # The first process, in the host's numbering.
    pid: int

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self.pid}/root")

    @property
    def source(self) -> Path:
        return self.root / SOURCE

    def run(self, script: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a shell script in the repository and wait until it ends."""
        return subprocess.run(
            self._command(script, {}),
            check=False,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
        )

    @contextmanager
    def running(
        self, script: str, log: Path, variables: Mapping[str, str]
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a shell script in the repository in the background."""
        with log.open("wb") as output:
            process = subprocess.Popen(self._command(script, variables), stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _command(self, script: str, variables: Mapping[str, str]) -> list[str]:
        enter = ("nsenter", f"--target={self.pid}", "--mount", "--pid", "--root")
        given = {**self._environment(), **variables}
        clean = ("env", "--ignore-environment", *(f"{name}={value}" for name, value in given.items()))
        return [*enter, *clean, "sh", "-c", f"cd /{SOURCE}\n{script}"]

    def _environment(self) -> dict[str, str]:
        """Return only the variables of the host that are needed to reach its package index."""
        indexes = [name for name in os.environ if name.startswith(("PIP_", "UV_")) and "INDEX" in name]
        environment = {name: os.environ[name] for name in (*PROXIES, *indexes) if name in os.environ}
        if (self.root / CERTIFICATES).exists():
            environment |= dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE"), f"/{CERTIFICATES}")
        return {**environment, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/srv", "LANG": "C.UTF-8"}


@contextmanager
def bare_machine(directory: Path) -> Iterator[BareMachine]:
    need_root()
    for program in ("git", "nsenter", "setpriv", "unshare"):
        need_program(program)
    with _installed(directory) as pid:
        machine = BareMachine(pid)
        _connect(machine.root)
        _copy_repository(machine.source)
        made = machine.run("git init --quiet")
        assert made.returncode == 0, made.stdout
        yield machine


@contextmanager
def _installed(directory: Path) -> Iterator[int]:
    """Install the machine; yield the id of its first process."""
    # The hook avoids usrmerge, and the dpkg option avoids waiting for the disk.
    install = (
        *(need_program("mmdebstrap"), "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}"),
        *("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--dpkgopt=force-unsafe-io", SUITE),
    )
    # The end of this process ends `unshare`, which ends the machine.
    begin = ("setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child")
    script = INSTALL.format(ready=shlex.quote(READY.strip()))
    with (
        (directory / "install.log").open("w+") as log,
        subprocess.Popen(
            (*begin, "sh", "-c", script, "sh", directory, *install),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == READY, (directory / "install.log").read_text()
            yield psutil.Process(process.pid).children()[0].pid
        finally:
            process.kill()


def _connect(root: Path) -> None:
    """Give the machine the host's access to the network."""
    for name in ("resolv.conf", "hosts"):
        shutil.copyfile(f"/etc/{name}", root / "etc" / name)
    for variable in ("SSL_CERT_FILE", "PIP_CERT"):
        if Path(os.environ.get(variable, "/nonexistent")).is_file():
            shutil.copyfile(os.environ[variable], root / CERTIFICATES)


def _copy_repository(target: Path) -> None:
    """Copy all files of the repository, including uncommitted ones."""
    listing = (need_program("git"), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listing, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    for file in (REPOSITORY / name for name in names.split("\0") if name):
        if file.is_file():
            copy = target / file.relative_to(REPOSITORY)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
