"""An answer that goes on: frames of a live client, until either side ends it."""

import asyncio

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.live.hub import LiveClient

EVENT_STREAM = "text/event-stream"
HEADERS = {
    # Nobody between us and the browser may keep or hold back any of it.
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


class EventStream(StreamingResponse):
    """Holds the client for as long as it is sent. Not left to a generator, which may be closed much later."""

    def __init__(self, client: LiveClient) -> None:
        super().__init__(client.frames(), media_type=EVENT_STREAM, headers=HEADERS)
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.current_task()
        async with self._client as client:
            client.give_up = sending.cancel if sending else None
            try:
                await super().__call__(scope, receive, send)
            except asyncio.CancelledError:
                # Cut off because it did not read; whoever else cancels us must be obeyed.
                if sending is None or not client.ended:
                    raise
                sending.uncancel()
