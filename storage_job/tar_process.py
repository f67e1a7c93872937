"""The tar process of a job: it dies with the job, and its exit status is always checked."""

import asyncio
import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import IO, Self, TypeVar

from storage_job.errors import JobError, failed

PIPE_BYTES = 1024 * 1024
_PR_SET_PDEATHSIG = 1
_KEPT_LINES = 20
_DISK_FULL = ("No space left on device", "Disk quota exceeded")
Result = TypeVar("Result")
_libc = ctypes.CDLL(None, use_errno=True)


class Child:
    """One process with pipes on both ends; `advice` says what to do if it fails."""

    def __init__(self, argv: Sequence[str], advice: str) -> None:
        self.name = argv[0]
        self._advice = advice
        self._complaints: list[str] = []
        self._process = _spawn(argv)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None  # noqa: S101 (for the type checker: we always ask for a pipe)
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None  # noqa: S101
        return self._process.stdout

    def read_into(self, buffer: memoryview) -> int:
        """Read what there is, at least a byte; 0 at the end."""
        return os.readv(self.stdout.fileno(), [buffer])

    def write(self, data: memoryview) -> None:
        """Write all of it; if the process has stopped reading, raise why."""
        try:
            while data:
                data = data[self.stdin.write(data) :]
        except BrokenPipeError:
            # Its status says why it stopped reading; the broken pipe is only the consequence.
            self.check()
            raise

    def check(self) -> None:
        """Wait for the end and raise unless the status is zero."""
        status = self._process.wait()
        self._listener.join()
        if status != 0:
            raise self._failure(status)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _failure(self, status: int) -> JobError:
        detail = next(iter(self._complaints), "it said nothing")
        if any(sign in line for line in self._complaints for sign in _DISK_FULL):
            return failed("The volume is full; nothing was changed. Give it more space, then try again.")
        return failed(f"{self.name} ended with status {status} ({detail}); {self._advice}.")

    def _listen(self) -> None:
        assert self._process.stderr is not None  # noqa: S101
        lines = (line.decode(errors="replace").strip()[:500] for line in self._process.stderr)
        self._complaints += islice(lines, _KEPT_LINES)
        for _ in lines:
            pass  # Keep reading: a full stderr pipe would block the child.


class Pipeline:
    """Children and the threads that serve their pipes; use as `with`, and none of them outlives the block."""

    def __init__(self, *children: Child) -> None:
        self._children = children
        self._threads = ThreadPoolExecutor()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.kill()
        # Their pipes have ended, so the threads do; only then may the pipes be closed.
        self._threads.shutdown()
        for child in self._children:
            child.close()

    def in_thread(self, work: Callable[..., Result], *arguments: object) -> "asyncio.Future[Result]":
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)


def _spawn(argv: Sequence[str]) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    try:
        # preexec_fn is safe beside threads since it makes two system calls and takes no lock. Call this from
        # the main thread only: the death signal follows the thread that forked, not the process.
        return subprocess.Popen(  # noqa: S603
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pipesize=PIPE_BYTES,
            preexec_fn=die_with_parent,  # noqa: PLW1509
            # Nothing but PATH: TAR_OPTIONS of the surroundings must not change archives.
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        )
    except OSError as error:
        raise failed(
            f"{argv[0]} cannot be started ({error.strerror}); install it in the job's image."
        ) from error
