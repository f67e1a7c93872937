"""The filter of system calls in the real sandbox: it refuses what no workspace needs, and tools work."""

import json
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from codehub.adapters.local import sandbox
from codehub.adapters.local.instance_files import SOCKETS_NAME
from codehub.adapters.local.owners import UIDS
from testkit.needs import need_bubblewrap, need_program, need_root
from tests.integration.sandbox_attempts import __file__ as attempts_file

PYTHON = str(Path(sys.executable).resolve())
# A sandbox without the filter, but everything else, lets these through.
KERNEL_ATTEMPTS = {
    "use the kernel's keyring",
    "make an io_uring",
    "handle page faults of the kernel",
    "open a socket to the host of a virtual machine",
}
# Stops a child as a debugger does (PTRACE_ATTACH).
DEBUG = """
import ctypes, os, signal
ptrace = ctypes.CDLL(None).ptrace
child = os.fork()
if child == 0:
    signal.pause()
assert ptrace(16, child, None, None) == 0
assert os.WIFSTOPPED(os.waitpid(child, 0)[1])
print("stopped")
os.kill(child, signal.SIGKILL)
"""
SERVER = """
const http = require('http'), fs = require('fs'), {Worker} = require('worker_threads');
fs.promises.writeFile('/tmp/x', 'x').then(() => fs.promises.readFile('/tmp/x', 'utf8')).then(text =>
  new Worker('require("worker_threads").parentPort.postMessage(1)', {eval: true}).once('message', () => {
    const server = http.createServer((_, response) => response.end(text)).listen(0, '127.0.0.1', () =>
      http.get(server.address(), response => response.on('data', data => {
        console.log('served ' + data); process.exit(0);
      })));
  }));
"""
NETWORK = "import socket; print(socket.getaddrinfo('127.0.0.1', 80)[0][4], socket.if_nameindex())"
GIT = "git init -q x && cd x && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m && git log"


class Inside:
    """Runs commands in the sandbox of an instance."""

    def __init__(self, directory: Path, uid: int | None) -> None:
        home, sockets = directory / "home", directory / SOCKETS_NAME
        for each in (home, sockets):
            each.mkdir(mode=0o700)
            if uid is not None:
                os.chown(each, uid, uid)
        sandbox.write_accounts(directory, uid)
        visible = (Path(sys.base_prefix), Path(attempts_file))
        self._mounts = sandbox.Mounts(home, sockets, directory, visible)
        self._uid = uid

    def run(self, command: Sequence[str], *, filtered: bool = True) -> subprocess.CompletedProcess[str]:
        program = sandbox.find_bubblewrap()
        assert program is not None
        with sandbox.open_filter() if filtered else allow_everything() as descriptor:
            return subprocess.run(
                sandbox.enter(program, command, self._mounts, uid=self._uid, filter_descriptor=descriptor),
                check=False,
                capture_output=True,
                text=True,
                pass_fds=(descriptor,),
            )

    def attempt(self, *, filtered: bool) -> set[str]:
        """Return the attempts that succeeded."""
        targets = {"scratch": sandbox.HOME, "lock": "no such lock", "pid": "1", "secret": "no such secret"}
        others = dict.fromkeys(("home", "credentials", "state", "socket", "abstract"), "/no such path")
        words = (attempts_file, json.dumps({**targets, **others, "port": "1"}))
        run = self.run((PYTHON, "-I", "-S", *words), filtered=filtered)
        assert run.returncode == 0, run.stderr
        return set(json.loads(run.stdout))


@contextmanager
def allow_everything() -> Iterator[int]:
    descriptor = os.memfd_create("everything")
    os.write(descriptor, struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF_0000))
    os.lseek(descriptor, 0, os.SEEK_SET)
    yield descriptor
    os.close(descriptor)


@pytest.fixture(params=["as this user", "as a user of its own"])
def inside(request: pytest.FixtureRequest, tmp_path: Path) -> Inside:
    need_bubblewrap()
    own = request.param == "as a user of its own"
    if own:
        need_root()
    return Inside(tmp_path, UIDS[0] if own else None)


def test_no_attempt_on_the_kernel_succeeds(inside: Inside) -> None:
    assert inside.attempt(filtered=True) & KERNEL_ATTEMPTS == set()


def test_without_the_filter_the_same_sandbox_lets_them_through(inside: Inside) -> None:
    assert inside.attempt(filtered=False) >= KERNEL_ATTEMPTS


@pytest.mark.parametrize(
    ("program", "command", "expected"),
    [
        ("node", ("-e", SERVER), "served x"),
        ("git", ("-c", f"alias.x=!{GIT}", "x"), "Author: a"),
        (PYTHON, ("-c", NETWORK), "127.0.0.1"),
        (PYTHON, ("-c", DEBUG), "stopped"),
    ],
)
def test_tools_work(inside: Inside, program: str, command: Sequence[str], expected: str) -> None:
    run = inside.run((need_program(program), *command))
    assert expected in run.stdout, run.stderr


def test_an_unsupported_machine_gets_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    need_bubblewrap()
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(sandbox, "_working", set())
    with pytest.raises(sandbox.NoSandbox, match="riscv64"):
        sandbox.require_bubblewrap()


def test_a_sandbox_that_does_not_filter_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need_bubblewrap()
    monkeypatch.setattr(sandbox, "_working", set())
    program, real = tmp_path / "bwrap", sandbox.find_bubblewrap()
    program.write_text(f'#!/bin/bash\nexec {real} "${{@/#--add-seccomp-fd/--sync-fd}}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sandbox, "find_bubblewrap", lambda: str(program))
    with pytest.raises(sandbox.NoSandbox):
        sandbox.require_bubblewrap()
