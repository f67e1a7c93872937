"""A line to a server on which answers come in small pieces, or end in the middle of a meta."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from urllib.parse import urlsplit

PIECE_BYTES = 16
# As far as a pause makes a piece arrive alone.
PAUSE_SECONDS = 0.001
CHUNK_BYTES = 65_536
IN_A_META = b"sha256:"


@asynccontextmanager
async def slow_line(endpoint_url: str, *, cut: bool) -> AsyncIterator[str]:
    """The URL of the near end."""
    far = urlsplit(endpoint_url)
    serving: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(far.hostname, far.port)
        with closing(writer), closing(far_writer):
            asking = asyncio.create_task(_pass_on(reader, far_writer))
            try:
                await _answer(far_reader, writer, cut=cut)
            except ConnectionError:
                pass  # Whoever asked has gone.
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)

    async with await asyncio.start_server(begin, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for each in serving:
            each.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, cut: bool) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        end = chunk.find(IN_A_META) if cut else -1
        passed = chunk if end < 0 else chunk[: end + len(IN_A_META)]
        for start in range(0, len(passed), PIECE_BYTES):
            writer.write(passed[start : start + PIECE_BYTES])
            await writer.drain()
            await asyncio.sleep(PAUSE_SECONDS)
        if end >= 0:
            return
