"""A cable to a server that can be cut: every connection over it is lost at once."""

import asyncio
from types import TracebackType

from testkit.waiting import until

CHUNK = 65_536


class Cable:
    """Listens on a port of its own and passes everything on; remembers what the server said."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._ends: set[asyncio.StreamWriter] = set()
        self._passed = bytearray()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "Cable":
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        for end in self._ends:
            end.transport.abort()

    async def until_passed(self, words: bytes, *, times: int) -> None:
        async def passed() -> bool:
            return self._passed.count(words) >= times

        await until(passed, f"{words!r} passed {times} times")

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._ends |= {writer, far_writer}
        await asyncio.gather(
            _pass_on(reader, far_writer, bytearray()), _pass_on(far_reader, writer, self._passed)
        )


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: bytearray) -> None:
    try:
        while content := await reader.read(CHUNK):
            passed += content
            writer.write(content)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
