"""The tar process of a job: it dies with the job, and its exit status is always checked."""

import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from itertools import islice
from typing import IO

from storage_job.errors import JobError, action_failed

PIPE_BYTES = 1024 * 1024
_PR_SET_PDEATHSIG = 1
_KEPT_LINES = 20
_DISK_FULL = ("No space left on device", "Disk quota exceeded")
_libc = ctypes.CDLL(None, use_errno=True)


class TarProcess:
    """A tar with pipes on both ends; `advice` tells people what to do if it fails."""

    def __init__(self, argv: Sequence[str], advice: str) -> None:
        self._advice = advice
        self._error_lines: list[str] = []
        self._process = _spawn(argv)
        self._stderr_reader = threading.Thread(target=self._read_stderr, daemon=True)
        self._stderr_reader.start()

    @property
    def stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None  # noqa: S101 (for the type checker: it is always a pipe)
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None  # noqa: S101
        return self._process.stdout

    def read_into(self, buffer: memoryview) -> int:
        """Read what is available, at least one byte; return 0 at the end."""
        return os.readv(self.stdout.fileno(), [buffer])

    def write(self, data: memoryview) -> None:
        """Write all of it; if tar has stopped reading, raise the reason."""
        try:
            while data:
                data = data[self.stdin.write(data) :]
        except BrokenPipeError:
            # The exit status gives the cause; the broken pipe is only its consequence.
            self.check()
            raise

    def check(self) -> None:
        """Wait for tar to exit; raise JobError unless its status is zero."""
        status = self._process.wait()
        self._stderr_reader.join()
        if status != 0:
            raise self._failure(status)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self._stderr_reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _failure(self, status: int) -> JobError:
        detail = next(iter(self._error_lines), "without an error message")
        if any(sign in line for line in self._error_lines for sign in _DISK_FULL):
            return action_failed(
                "The volume is full; nothing was changed. Give it more space, then try again."
            )
        return action_failed(f"tar exited with status {status} ({detail}). {self._advice}")

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None  # noqa: S101
        lines = (line.decode(errors="replace").strip()[:500] for line in self._process.stderr)
        self._error_lines += islice(lines, _KEPT_LINES)
        for _ in lines:
            pass  # Keep reading: a full stderr pipe would block tar.


def _spawn(argv: Sequence[str]) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    try:
        # preexec_fn is safe with threads here: it makes two system calls and takes no lock. Call this only
        # from the main thread: the death signal follows the thread that forked, not the process.
        return subprocess.Popen(  # noqa: S603
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pipesize=PIPE_BYTES,
            preexec_fn=die_with_parent,  # noqa: PLW1509
            # Pass only PATH: an inherited TAR_OPTIONS must not change archives.
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        )
    except OSError as error:
        raise action_failed(
            f"Cannot start {argv[0]} ({error.strerror}). Install it in the job's image."
        ) from error
