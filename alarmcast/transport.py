"""The two ways to send a call: one waits, the other awaits. All that is decided is decided elsewhere."""

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from typing import Any, TypeVar

import httpx

from alarmcast.errors import Unavailable, Unreachable, error_from_response, map_connection_errors
from alarmcast.requests import Pages, PageT, Stream, TypedRequest
from alarmcast.retry import RetryPolicy, RetryState
from alarmcast.upload import Upload

T = TypeVar("T")
_SILENCE = 90.0  # seconds; the service's streams say every 15 that they are still there


def _timeout(http: httpx.Client | httpx.AsyncClient, seconds: float | None) -> httpx.Timeout:
    usual = http.timeout
    if seconds is None or usual.read is None:
        return usual
    return httpx.Timeout(**(usual.as_dict() | {"read": max(usual.read, seconds)}))


def _ended(http: httpx.Client | httpx.AsyncClient) -> Unreachable:
    return Unreachable(f"The stream of {http.base_url} ended: the service stops or starts anew. Follow it again.")


class Transport:
    """Sends over an ``httpx.Client``."""

    def __init__(self, http: httpx.Client, patience: RetryPolicy) -> None:
        self.http, self._patience = http, patience

    def send(self, call: TypedRequest[T]) -> T:
        """Return the answer of a call."""
        tries = RetryState(self._patience, repeatable=call.request.route.method == "GET")
        while True:
            try:
                return call.read(self._answer(call))
            except (Unavailable, Unreachable) as failure:
                time.sleep(tries.next_delay(failure))

    def items(self, source: Stream[T] | Pages[Any, T]) -> Generator[T, None, None]:
        """Yield what comes out of a stream, or what is on one page after the other."""
        return self._streamed(source) if isinstance(source, Stream) else self._paged(source)

    def _paged(self, pages: Pages[PageT, T]) -> Generator[T, None, None]:
        call: TypedRequest[PageT] | None = pages.first
        while call is not None:
            page = self.send(call)
            yield from pages.items(page)
            call = pages.after(page)

    def _streamed(self, stream: Stream[T]) -> Generator[T, None, None]:
        timeout, reader = _timeout(self.http, _SILENCE), stream.reader()
        with (
            map_connection_errors(self.http.base_url),
            self.http.stream(**stream.request.parts, timeout=timeout) as answer,
        ):
            if answer.is_error:
                answer.read()
                raise error_from_response(answer)
            for chunk in answer.iter_bytes():
                yield from reader(chunk)
        if stream.endless:
            raise _ended(self.http)

    def _answer(self, call: TypedRequest[T]) -> httpx.Response:
        timeout, body = _timeout(self.http, call.read_timeout), call.request.body
        content = iter(body) if isinstance(body, Upload) else body
        with map_connection_errors(self.http.base_url):
            return self.http.request(**call.request.parts, content=content, timeout=timeout)


class AsyncTransport:
    """Sends over an ``httpx.AsyncClient``."""

    def __init__(self, http: httpx.AsyncClient, patience: RetryPolicy) -> None:
        self.http, self._patience = http, patience

    async def send(self, call: TypedRequest[T]) -> T:
        """Return the answer of a call."""
        tries = RetryState(self._patience, repeatable=call.request.route.method == "GET")
        while True:
            try:
                return call.read(await self._answer(call))
            except (Unavailable, Unreachable) as failure:
                await asyncio.sleep(tries.next_delay(failure))

    def items(self, source: Stream[T] | Pages[Any, T]) -> AsyncGenerator[T, None]:
        """Yield what comes out of a stream, or what is on one page after the other."""
        return self._streamed(source) if isinstance(source, Stream) else self._paged(source)

    async def _paged(self, pages: Pages[PageT, T]) -> AsyncGenerator[T, None]:
        call: TypedRequest[PageT] | None = pages.first
        while call is not None:
            page = await self.send(call)
            for item in pages.items(page):
                yield item
            call = pages.after(page)

    async def _streamed(self, stream: Stream[T]) -> AsyncGenerator[T, None]:
        timeout, reader = _timeout(self.http, _SILENCE), stream.reader()
        with map_connection_errors(self.http.base_url):
            async with self.http.stream(**stream.request.parts, timeout=timeout) as answer:
                if answer.is_error:
                    await answer.aread()
                    raise error_from_response(answer)
                async for chunk in answer.aiter_bytes():
                    for item in reader(chunk):
                        yield item
        if stream.endless:
            raise _ended(self.http)

    async def _answer(self, call: TypedRequest[T]) -> httpx.Response:
        timeout, body = _timeout(self.http, call.read_timeout), call.request.body
        content = aiter(body) if isinstance(body, Upload) else body
        with map_connection_errors(self.http.base_url):
            return await self.http.request(**call.request.parts, content=content, timeout=timeout)
