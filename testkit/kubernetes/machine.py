"""A machine of the test cluster: PID, mount and network namespaces that end with their first process.

Nothing outlives a machine: its processes are killed, its mounts and network interfaces vanish.
"""

import ctypes
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from testkit.kubernetes import binaries
from testkit.kubernetes.deadline import wait_until

PR_SET_PDEATHSIG = 1
TAIL_BYTES = 2000
_libc = ctypes.CDLL(None)


def run(*command: str | Path, stdin: int = subprocess.DEVNULL) -> str:
    """Run a command and return its output; raise RuntimeError with its own words."""
    words = [str(word) for word in command]
    ended = subprocess.run(words, check=False, stdin=stdin, capture_output=True, text=True)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {ended.stderr.strip()}")
    return ended.stdout


class Machine:
    """Namespaces and what runs in them; also for a process that did not start them."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self._holder: subprocess.Popen[bytes] | None = None

    @property
    def _record(self) -> Path:
        return self.directory / "machine.json"

    @property
    def _errors(self) -> Path:
        return self.directory / "unshare.txt"

    def boot(self, *, outlive: bool) -> None:
        """Create the namespaces. They end with the calling thread, unless they are to outlive it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._set_logs_aside()
        command = ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--mount", "--net"]
        # Mounts in the machine stay in it, but what the host unmounts is unmounted here as well.
        command += ["--propagation", "slave", str(binaries.built("pause"))]
        with self._errors.open("wb") as errors:
            self._holder = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                # Not the caller's: it may outlive the caller, whose reader would wait for it.
                stdout=errors,
                stderr=errors,
                start_new_session=outlive,
                preexec_fn=None if outlive else _end_with_parent,  # noqa: PLW1509
            )
        wait_until(self._is_up, f"{self.name} is up")
        first = self._first_process(self._holder.pid)
        self._record.write_text(json.dumps({"pid": first.pid, "created": first.create_time()}))
        self.run_ip("link", "set", "lo", "up")

    def _is_up(self) -> bool:
        assert self._holder is not None
        if self._holder.poll() is not None:
            raise RuntimeError(f"{self.name} does not start: {self._errors.read_text().strip()}")
        with suppress(psutil.Error, IndexError):
            # Its name changes when everything is mounted.
            return self._first_process(self._holder.pid).name() == "pause"
        return False

    @staticmethod
    def _first_process(holder: int) -> psutil.Process:
        return psutil.Process(holder).children()[0]

    def power_off(self) -> None:
        """End everything at once, without a goodbye; do nothing if it is off."""
        if first := self._first():
            first.kill()
            # The kernel kills and reaps all others before the first process is gone.
            psutil.wait_procs([first])
        if self._holder is not None:
            self._holder.wait()
        self._record.unlink(missing_ok=True)

    def _first(self) -> psutil.Process | None:
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            record = json.loads(self._record.read_text())
            first = psutil.Process(record["pid"])
            # Another process may have got the number meanwhile.
            return first if first.create_time() == record["created"] else None
        return None

    @property
    def is_on(self) -> bool:
        first = self._first()
        return first is not None and first.status() != psutil.STATUS_ZOMBIE

    @property
    def pid(self) -> int:
        first = self._first()
        if first is None:
            raise RuntimeError(f"{self.name} is off; start it first.")
        return first.pid

    def run(self, *command: str | Path, stdin: int = subprocess.DEVNULL) -> str:
        return run(*self._enter(), *command, stdin=stdin)

    def run_ip(self, *arguments: str) -> str:
        """Run `ip` in the network namespace only, where the PIDs of other machines have a meaning."""
        return run("nsenter", f"--target={self.pid}", "--net", "ip", *arguments)

    def _enter(self) -> list[str]:
        return ["nsenter", f"--target={self.pid}", "--pid", "--mount", "--net"]

    def start(self, name: str, command: Sequence[str | Path], **variables: str) -> None:
        """Start a process that appends its output to a log; the machine's first process adopts it."""
        with self.log(name).open("ab") as log:
            subprocess.run(
                [*self._enter(), "setsid", "--fork", *map(str, command)],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **variables},
            )

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def tail(self, name: str) -> str:
        log = self.log(name)
        return log.read_bytes()[-TAIL_BYTES:].decode(errors="replace") if log.exists() else ""

    def _set_logs_aside(self) -> None:
        """Rename the logs of an earlier boot: a log says that its program was started."""
        for log in self.directory.glob("*.log"):
            log.rename(log.with_suffix(".old"))

    def ended(self) -> list[str]:
        """Return the programs that were started, but have ended."""
        running = {name for process in self._members() for name in _names(process)}
        logs = sorted(self.directory.glob("*.log")) if running else []
        return [log.stem for log in logs if log.stem not in running]

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to the processes of a program."""
        for process in self.processes(name):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def kill(self, name: str) -> None:
        """Kill the processes of a program and return when they are gone."""
        found = self.processes(name)
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(found)

    def processes(self, name: str) -> list[psutil.Process]:
        """Return the processes of a program or Python module, without those in containers."""
        return [process for process in self._members() if name in _names(process)]

    def _members(self) -> Iterator[psutil.Process]:
        first = self._first()
        namespace = _pid_namespace(first) if first else None
        for process in psutil.process_iter():
            if namespace is not None and _pid_namespace(process) == namespace:
                yield process


def _end_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _pid_namespace(process: psutil.Process) -> str | None:
    with suppress(OSError):
        return os.readlink(f"/proc/{process.pid}/ns/pid")  # noqa: PTH115 (not a path)
    return None


def _names(process: psutil.Process) -> set[str]:
    with suppress(psutil.Error):
        # A module is the third word, after the interpreter and -m.
        return {Path(word).name for word in process.cmdline()[:3]}
    return set()
