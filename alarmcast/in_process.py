"""An ASGI app in this process as something a :class:`~alarmcast.Client` can call."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx


class InProcess(httpx.BaseTransport):
    """Runs each request in an event loop of its own: ``Client("http://here", transport=InProcess(app))``.

    For threads without a running loop; where one runs, use ``AsyncClient(transport=httpx.ASGITransport(app))``.
    An answer is read whole before it is given, so a stream that never ends never begins.
    """

    def __init__(self, app: Any, *, raise_defects: bool = True) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=raise_defects)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Let the app answer."""
        return asyncio.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        asked = httpx.Request(request.method, request.url, headers=request.headers, stream=_Body(request))
        answer = await self._transport.handle_async_request(asked)
        body = httpx.ByteStream(await _whole(answer.stream))
        return httpx.Response(answer.status_code, headers=answer.headers, stream=body)


class _Body(httpx.AsyncByteStream):
    """A request's body, piece by piece, however it was given."""

    def __init__(self, request: httpx.Request) -> None:
        self._stream = request.stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._stream, httpx.SyncByteStream)  # noqa: S101 - a sync client sends no other
        for piece in self._stream:
            yield piece


async def _whole(stream: httpx.SyncByteStream | httpx.AsyncByteStream) -> bytes:
    assert isinstance(stream, httpx.AsyncByteStream)  # noqa: S101 - an async transport gives no other
    return b"".join([piece async for piece in stream])
