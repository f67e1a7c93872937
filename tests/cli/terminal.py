"""The `codehub` command on a pseudo-terminal."""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from threading import Thread
from types import TracebackType

from testkit.waiting import until
from tests.codehub_command import CODEHUB

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A running command, killed at the end of the block."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._screen, child = os.openpty()
        self._process = subprocess.Popen(
            (CODEHUB, *arguments), env=environment, stdin=child, stdout=child, stderr=child
        )
        os.close(child)
        self._read = b""
        self._reader = Thread(target=self._collect, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        os.close(self._screen)

    @property
    def raw(self) -> str:
        return self._read.decode(errors="replace")

    @property
    def text(self) -> str:
        """All output so far, without control sequences."""
        return CONTROL.sub("", self.raw)

    async def shows(self, words: str) -> None:
        async def shown() -> bool:
            return words in self.text or self._process.poll() is not None

        await until(shown, f"the terminal shows {words!r}")
        self._reader.join(0.2 if self._process.poll() is None else None)
        assert words in self.text, self.text

    async def reply(self, question: str, line: str) -> None:
        await self.shows(question)
        os.write(self._screen, f"{line}\n".encode())

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    async def wait(self) -> int:
        """Wait for the end and return the exit code; all output has been read."""

        async def over() -> bool:
            return self._process.poll() is not None

        await until(over, "the command ended")
        self._reader.join()
        return int(self._process.returncode)

    def _collect(self) -> None:
        while True:
            try:
                content = os.read(self._screen, 65_536)
            except OSError:
                # Linux raises this when the other side is closed.
                return
            self._read += content
