"""Answers that pages share: one that was asked for a moment ago is not asked for again."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class RequestCache:
    """Keeps answers for some seconds; who asks while one is on its way waits for the same one."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._answers: dict[Hashable, tuple[float, asyncio.Future[Any]]] = {}  # until when, and what

    async def get_or_fetch(self, key: Hashable, ask: Callable[[], Awaitable[T]], *, seconds: float = 4.0) -> T:
        """Return the answer kept under ``key``, or ask for it and keep it for so many seconds.

        A failure is told to all who wait, and not kept.
        """
        now = self._monotonic()
        self._answers = {one: kept for one, kept in self._answers.items() if now < kept[0]}
        if key not in self._answers:
            answer = asyncio.ensure_future(ask())
            answer.add_done_callback(lambda done: self._drop_failure(key, done))
            self._answers[key] = (now + seconds, answer)
        # Shielded, because a page that is closed must not take the answer away from the others.
        answer_of_all: T = await asyncio.shield(self._answers[key][1])
        return answer_of_all

    def forget(self) -> None:
        """Ask anew from now on, because something was changed."""
        self._answers.clear()

    def _drop_failure(self, key: Hashable, done: asyncio.Future[Any]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if failed and key in self._answers and self._answers[key][1] is done:
            del self._answers[key]
