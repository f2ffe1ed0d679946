"""A cache of API responses that open pages share."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class RequestCache:
    """Caches responses for some seconds; concurrent callers wait for the same request."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._responses: dict[Hashable, tuple[float, asyncio.Future[Any]]] = {}  # expiry, response

    async def get_or_fetch(self, key: Hashable, fetch: Callable[[], Awaitable[T]], *, seconds: float = 4.0) -> T:
        """Return the response cached under ``key``, or fetch it and cache it for so many seconds.

        A failure is raised in all callers that wait, and not cached.
        """
        now = self._monotonic()
        self._responses = {old: entry for old, entry in self._responses.items() if now < entry[0]}
        if key not in self._responses:
            request = asyncio.ensure_future(fetch())
            request.add_done_callback(lambda done: self._drop_failure(key, done))
            self._responses[key] = (now + seconds, request)
        # Shielded: a page that is closed must not cancel the request of the others.
        response: T = await asyncio.shield(self._responses[key][1])
        return response

    def invalidate(self) -> None:
        """Drop all responses, because something was changed."""
        self._responses.clear()

    def _drop_failure(self, key: Hashable, done: asyncio.Future[Any]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if failed and key in self._responses and self._responses[key][1] is done:
            del self._responses[key]
