"""Server-sent events: a streaming response, and a way to wake it from other threads."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class EventStream(StreamingResponse):
    """Calls ``close`` however it ends, a lost connection included."""

    def __init__(self, content: AsyncIterator[bytes] | AsyncIterator[str], close: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(content, media_type="text/event-stream", headers=headers)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the client disconnects or the content ends."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()


class Wake:
    """Wakes a stream: called from any thread, awaited in the event loop that created it."""

    def __init__(self) -> None:
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()

    def __call__(self) -> None:
        """Wake the stream."""
        with suppress(RuntimeError):  # the event loop has ended, and with it the stream
            self._loop.call_soon_threadsafe(self._event.set)

    async def within(self, seconds: float) -> bool:
        """Wait to be woken; return False on timeout."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        self._event.clear()
        return True
